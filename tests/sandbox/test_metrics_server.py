"""The metrics server for other clusters: what it answers, and how it becomes and stops being a part of one."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from django.core.management import CommandError, call_command

from grid.core.errors import GridError
from grid.sandbox.client import API_SERVICES, PODS, SERVICES, Client, Object, SystemClock
from grid.sandbox.metricsserver import MetricsServer, api_service, service
from tests.sandbox.support import add_node, api_server, make_node, make_pod
from tests.support.waiting import eventually

PATH = API_SERVICES.path(name="v1beta1.metrics.k8s.io")
SERVICE = SERVICES.path("kube-system", "compute-grid-metrics")
NAME = "compute-grid-metrics.kube-system.svc"


@pytest.fixture(autouse=True)
def cluster_without_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded cluster plays another one, which serves no metrics of its own."""
    for module in ("furnishing", "aggregation"):
        monkeypatch.setattr(f"grid.sandbox.apiserver.{module}.furnish_metrics_api", lambda registry: None)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    (tmp_path / "api").mkdir()
    async with api_server(tmp_path / "api", SystemClock()) as client:
        yield client


def usage(millicores: int, mebibytes: int) -> Object:
    time = "2026-11-21T04:00:00Z"
    return {
        "cpu": {"time": time, "usageNanoCores": millicores * 10**6},
        "memory": {"time": time, "workingSetBytes": mebibytes * 2**20},
    }


def summaries(uid: str) -> dict[str, Object]:
    pod = {
        "podRef": {"name": "busy", "namespace": "default", "uid": uid},
        "containers": [{"name": "run", **usage(250, 64)}],
    }
    return {"a": {"node": {"nodeName": "a", **usage(250, 64)}, "pods": [pod]}, "b": {"node": {}, "pods": []}}


@asynccontextmanager
async def serving(client: Client, folder: Path, uid: str = "") -> AsyncIterator[None]:
    task = asyncio.create_task(MetricsServer(client, lambda: summaries(uid), folder).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def registered(client: Client) -> Object:
    async def registration() -> Object:
        try:
            return await client.get(PATH)
        except GridError:
            return {}

    service = await eventually(registration)
    return dict(service["spec"])


async def ask(spec: Object, path: str) -> tuple[int, Any]:
    """As the API server asks: by the certificate and the name that the APIService says."""
    trust = ssl.create_default_context(cadata=base64.b64decode(spec["caBundle"]).decode())
    url = f"https://127.0.0.1:{spec['service']['port']}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=trust, server_hostname=NAME) as answer:
        return answer.status, await answer.json()


async def test_metrics_server_serves_usage_until_it_ends(client: Client, tmp_path: Path) -> None:
    for name in ("a", "b"):
        await add_node(client, make_node(name))
    body = make_pod("busy")
    body["metadata"]["labels"] = {"app": "busy"}
    made = await client.create(PODS.path("default"), body)
    await client.create(PODS.path("default"), make_pod("unknown"))
    async with serving(client, tmp_path, made["metadata"]["uid"]):
        spec, root = await registered(client), "/apis/metrics.k8s.io/v1beta1"
        assert spec["service"].items() >= {"namespace": "kube-system", "name": "compute-grid-metrics"}.items()
        assert (await client.get(SERVICE))["spec"]["externalName"] == "localhost"
        _, listed = await eventually(
            lambda: ask(spec, f"{root}/namespaces/default/pods"), holds=lambda answer: answer[1].get("items")
        )
        (item,) = listed["items"]
        assert (listed["kind"], item["metadata"]["name"]) == ("PodMetricsList", "busy")
        assert item["metadata"]["labels"] == {"app": "busy"}
        assert item["containers"] == [{"name": "run", "usage": {"cpu": "250000000n", "memory": "65536Ki"}}]
        assert (item["timestamp"], item["window"]) == ("2026-11-21T04:00:00Z", "10s")
        for query, count in (("app=busy", 1), ("app!=busy", 0), ("app in (x,busy)", 1)):
            _, chosen = await ask(spec, f"{root}/pods?labelSelector={query}")
            assert len(chosen["items"]) == count
        assert (await ask(spec, f"{root}/namespaces/default/pods/busy"))[1]["kind"] == "PodMetrics"
        assert (await ask(spec, f"{root}/namespaces/other/pods"))[1]["items"] == []
        status, refusal = await ask(spec, f"{root}/namespaces/default/pods/unknown")
        assert (status, refusal["reason"]) == (404, "NotFound")
        assert refusal["message"] == 'pods.metrics.k8s.io "unknown" not found'
        status, refusal = await ask(spec, f"{root}/pods?labelSelector=!!")
        assert (status, refusal["kind"]) == (400, "Status")
        nodes = (await ask(spec, f"{root}/nodes"))[1]["items"]
        assert [(node["metadata"]["name"], node["usage"]["cpu"]) for node in nodes] == [("a", "250000000n")]
        assert (await ask(spec, f"{root}/nodes/b"))[0] == 404
        kinds = {resource["kind"] for resource in (await ask(spec, root))[1]["resources"]}
        assert kinds == {"NodeMetrics", "PodMetrics"}
    for path in (PATH, SERVICE):
        with pytest.raises(GridError, match="not found"):
            await client.get(path)


async def test_leftovers_of_killed_metrics_server_are_repaired(client: Client, tmp_path: Path) -> None:
    await client.create(SERVICES.path("kube-system"), service())
    await client.create(API_SERVICES.path(), api_service(1, b"old"))
    async with serving(client, tmp_path):
        await eventually(lambda: client.get(PATH), holds=lambda service: service["spec"]["service"]["port"] != 1)
        spec = (await client.get(PATH))["spec"]
        assert (await ask(spec, "/apis/metrics.k8s.io"))[1]["name"] == "metrics.k8s.io"


async def test_another_metrics_server_stays(client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = api_service(443, b"other")
    other["spec"]["service"]["name"] = "metrics-server"
    await client.create(API_SERVICES.path(), other)
    async with serving(client, tmp_path):
        await eventually(lambda: "metrics.k8s.io is not served" in caplog.text)
    assert (await client.get(PATH))["spec"]["service"]["name"] == "metrics-server"
    with pytest.raises(GridError, match="not found"):
        await client.get(SERVICE)
    assert "this cluster has another metrics server, kube-system/metrics-server; remove its APIService" in caplog.text


def test_the_embedded_cluster_needs_none(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="the embedded cluster has metrics of its own"):
        call_command("sandbox", f"--data={tmp_path / 'data'}", "--metrics-server")
