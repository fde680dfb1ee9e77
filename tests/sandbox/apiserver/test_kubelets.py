"""Logs and usage come from the kubelets; without them the answer says so."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from grid.sandbox.apiserver.certificates import load_or_make
from grid.sandbox.apiserver.logs import log_request
from grid.sandbox.apiserver.status import Failure
from tests.sandbox.apiserver.conftest import Api

LOG = "/api/v1/namespaces/default/pods/p/log"
METRICS = "/apis/metrics.k8s.io/v1beta1"


@dataclass(slots=True)
class Kubelet:
    """Answers as a node's kubelet would."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    summary: Any = field(default_factory=dict)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        if request.path == "/stats/summary":
            return web.json_response(self.summary)
        if "previous" in request.query:
            return web.Response(status=400, text='previous terminated container "app" in pod "p" not found')
        response = web.StreamResponse()
        await response.prepare(request)
        for line in (b"one\n", b"two\n"):
            await response.write(line)
        return response


@pytest_asyncio.fixture
async def kubelet(api: Api, tmp_path: Path) -> AsyncIterator[Kubelet]:
    """The kubelet of node n1, on which pod p is."""
    fake = Kubelet()
    application = web.Application()
    application.router.add_get("/{path:.*}", fake.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    (tmp_path / "kubelet").mkdir()
    context: ssl.SSLContext = load_or_make(tmp_path / "kubelet").context
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    fake.port = runner.addresses[0][1]
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": fake.port}},
    }
    await api.make("/api/v1/nodes", {"metadata": {"name": "n1", "labels": {"pool": "a"}}, "status": status})
    made = await api.pod("p", node="n1")
    cpu, memory = {"usageNanoCores": 250_000_000, "time": "2026-01-01T00:00:00Z"}, {"workingSetBytes": 64 * 2**20}
    reference = {"name": "p", "namespace": "default", "uid": made["metadata"]["uid"]}
    container = {"name": "app", "cpu": cpu, "memory": memory}
    fake.summary = {
        "node": {"nodeName": "n1", "cpu": cpu, "memory": memory},
        "pods": [{"podRef": reference, "containers": [container]}],
    }
    yield fake
    await runner.cleanup()


async def test_logs_are_passed_on_with_their_options(api: Api, kubelet: Kubelet) -> None:
    answer = await api.ask("GET", f"{LOG}?tailLines=2&timestamps=true")
    assert (answer.status, answer.body) == (200, "one\ntwo\n")
    assert kubelet.asked == ["/containerLogs/default/p/app?timestamps=true&tailLines=2"]


async def test_a_kubelets_refusal_is_passed_on_as_a_status(api: Api, kubelet: Kubelet) -> None:
    answer = await api.ask("GET", f"{LOG}?previous=true")
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert "previous terminated container" in answer.body["message"]


async def test_absent_kubelet_is_an_error_with_its_address(api: Api) -> None:
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}},
    }
    await api.make("/api/v1/nodes", {"metadata": {"name": "n1"}, "status": status})
    await api.pod("p", node="n1")
    answer = await api.ask("GET", LOG)
    assert answer.status == 500
    assert "https://127.0.0.1:1/containerLogs/default/p/app" in answer.body["message"]
    assert (await api.ask("GET", f"{METRICS}/nodes")).body["items"] == []


async def test_usage_of_nodes_and_pods_comes_in_kubernetes_units(api: Api, kubelet: Kubelet) -> None:
    (node,) = (await api.ask("GET", f"{METRICS}/nodes")).body["items"]
    assert node["usage"] == {"cpu": "250000000n", "memory": "65536Ki"}
    assert node["metadata"]["labels"] == {"pool": "a"}
    pod = (await api.ask("GET", f"{METRICS}/namespaces/default/pods/p")).body
    assert pod["containers"] == [{"name": "app", "usage": {"cpu": "250000000n", "memory": "65536Ki"}}]
    assert kubelet.asked == ["/stats/summary"], "the second answer came from what was known"


def test_container_name_is_required_among_several() -> None:
    metadata: dict[str, Any] = {"name": "p", "namespace": "default"}
    spec = {"initContainers": [{"name": "i"}], "containers": [{"name": "a"}, {"name": "b"}]}
    with pytest.raises(Failure, match=r"choose one of: \[i a b\]"):
        log_request({"metadata": metadata, "spec": spec}, {})
    metadata["annotations"] = {"kubectl.kubernetes.io/default-container": "b"}
    assert log_request({"metadata": metadata, "spec": spec}, {}).path == "/containerLogs/default/p/b"
    assert log_request({"metadata": metadata, "spec": spec}, {"container": "i"}).path == "/containerLogs/default/p/i"
