"""How many workers a cluster's framework would like to have, as the autoscaler asks for it: through the API server, and not otherwise."""

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from hypothesis import given, strategies as st

from grid.core.labels import KEYS
from grid.kube.objects import Autoscaler, Metadata
from grid.kube.store import Store
from grid.metrics.external import LIFETIME, METRIC, RENEWAL, Authority, Demand, read_demand, write_demand
from grid.runtime.demand import OLDEST, DemandServer, FrontProxy
from grid.sandbox.apiserver.frontproxy import FrontProxyCertificate as SandboxFrontProxy
from tests.support.runtime import become

NOW = datetime.now(UTC).replace(microsecond=0)  # certificates are checked by the machine's clock
NAMESPACE = "compute-grid"
HOST = "demand.compute-grid-system.svc"
AUTHORITY = Authority("a secret of the tests")


def autoscaler(id: str, annotation: str) -> Autoscaler:
    metadata = Metadata(
        name=f"cluster-{id}-worker",
        namespace=NAMESPACE,
        resource_version="1",
        labels={KEYS.execution: id},
        annotations={KEYS.demand: annotation},
    )
    return Autoscaler(metadata=metadata)


class Front:
    """A cluster's front proxy as the server under test knows it; a test may change `known` and `now`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.proxy = SandboxFrontProxy.load_or_make(folder)
        self.known: FrontProxy | None = FrontProxy(self.proxy.authority, ["front-proxy-client"])
        self.now = NOW

    def client(self) -> ssl.SSLContext:
        """As the API server calls: with its certificate, and the bundle that the APIService has."""
        return self.proxy.context(AUTHORITY.pem, trusting=False)


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(tmp_path / "front-proxy")


@pytest.fixture
async def server(front: Front) -> AsyncIterator[DemandServer]:
    store: Store[Autoscaler] = Store(
        "autoscalers", indexes={"execution": lambda autoscaler: autoscaler.metadata.labels.get(KEYS.execution, "")}
    )
    become(
        store,
        [
            autoscaler("busy", write_demand(Demand(7, NOW - timedelta(seconds=20)))),
            autoscaler("idle", write_demand(Demand(0, NOW))),
            autoscaler("silent", write_demand(Demand(7, NOW - OLDEST - timedelta(seconds=1)))),
            autoscaler("hostile", '{"wanted": -4, "at": "yesterday"}'),
        ],
    )
    server = DemandServer(
        store, lambda: front.known, namespace=NAMESPACE, authority=AUTHORITY, host=HOST, clock=lambda: front.now
    )
    yield server
    await server.stop()


@pytest.fixture
async def port(server: DemandServer) -> int:
    return await server.start("127.0.0.1", 0)


async def call(port: int, tls: ssl.SSLContext, path: str, **query: str) -> tuple[int, Any]:
    """Over a connection of its own."""
    url = f"https://127.0.0.1:{port}{path}"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, params=query, ssl=tls, server_hostname=HOST) as answer,
    ):
        return answer.status, await answer.json()


@pytest.fixture
def ask(front: Front, port: int) -> Any:
    """As the API server."""
    return functools.partial(call, port, front.client())


def path(namespace: str = NAMESPACE, metric: str = METRIC) -> str:
    return f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}"


async def test_an_autoscaler_is_told_what_its_framework_would_like(ask: Any) -> None:
    status, body = await ask(path(), labelSelector="execution-id=busy")
    assert status == 200
    assert body["kind"] == "ExternalMetricValueList"
    assert body["items"] == [
        {
            "metricName": METRIC,
            "metricLabels": {"execution-id": "busy"},
            "timestamp": (NOW - timedelta(seconds=20)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "value": "7",
        }
    ]
    _, idle = await ask(path(), labelSelector="execution-id=idle")
    assert idle["items"][0]["value"] == "0"


async def test_no_number_is_given_where_none_is_fresh(ask: Any) -> None:
    places = [(NAMESPACE, id) for id in ("silent", "hostile", "unknown", "busy,idle")]
    for namespace, id in (*places, ("kube-system", "busy")):
        status, body = await ask(path(namespace=namespace), labelSelector=f"execution-id={id}")
        assert (status, body["items"]) == (200, []), id


def anybody() -> ssl.SSLContext:
    """Who knows the bundle and has no certificate."""
    return ssl.create_default_context(cadata=AUTHORITY.pem)


async def test_without_the_front_proxys_certificate_nothing_is_told(port: int) -> None:
    for where in (path(), "/apis", "/apis/external.metrics.k8s.io/v1beta1", "/elsewhere"):
        status, body = await call(port, anybody(), where, labelSelector="execution-id=busy")
        assert (status, body["reason"]) == (401, "Unauthorized"), where
        assert "kubectl get --raw" in body["message"]


async def test_a_certificate_of_another_authority_is_no_way_in(port: int, tmp_path: Path) -> None:
    stranger = Front(tmp_path / "stranger")
    with pytest.raises(aiohttp.ClientError):
        await call(port, stranger.client(), path(), labelSelector="execution-id=busy")


async def test_only_client_names_allowed_by_cluster_are_admitted(
    front: Front, port: int, server: DemandServer, ask: Any
) -> None:
    for names, expected in ((["another"], 403), ([], 200), (["another", "front-proxy-client"], 200)):
        front.known = FrontProxy(front.proxy.authority, names)
        await server.refresh()
        assert (await ask(path(), labelSelector="execution-id=busy"))[0] == expected, names


async def test_until_the_authority_is_known_nobody_is_answered(front: Front, server: DemandServer) -> None:
    front.known = None
    port = await server.start("127.0.0.1", 0)
    for tls in (front.client(), anybody()):
        assert (await call(port, tls, path(), labelSelector="execution-id=busy"))[0] == 503
    status, body = await call(port, anybody(), "/healthz")
    assert status == 503
    assert "extension-apiserver-authentication" in body["problems"][0]
    front.known = FrontProxy(front.proxy.authority, ["front-proxy-client"])
    await server.refresh()
    assert (await call(port, front.client(), path(), labelSelector="execution-id=busy"))[0] == 200
    assert await call(port, anybody(), "/healthz") == (200, {"problems": []})


async def test_changed_cluster_authority_ends_its_connections(
    front: Front, port: int, server: DemandServer, tmp_path: Path
) -> None:
    url = f"https://127.0.0.1:{port}/apis"
    async with aiohttp.ClientSession() as session:

        async def status() -> int:
            async with session.get(url, ssl=before, server_hostname=HOST) as answer:
                await answer.read()
                return answer.status

        before = front.client()
        assert await status() == 200
        other = Front(tmp_path / "renewed")
        front.known = other.known
        await server.refresh()
        with pytest.raises(aiohttp.ClientError):
            await status()
    assert (await call(port, other.client(), "/apis"))[0] == 200


async def test_its_certificate_is_renewed_while_it_runs(front: Front, port: int, server: DemandServer) -> None:
    first = await certificate(port)
    await server.refresh()
    assert await certificate(port) == first
    front.now += LIFETIME - RENEWAL
    await server.refresh()
    second = await certificate(port)
    assert first.not_valid_after_utc == NOW + LIFETIME
    assert second.not_valid_after_utc == front.now + LIFETIME


async def certificate(port: int) -> x509.Certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    raw = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(raw)


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    demand = read_demand(text)
    assert demand is None or demand.wanted >= 0


@given(st.integers(0, 2**31), st.datetimes(timezones=st.just(UTC)))
def test_written_demand_is_read_back(wanted: int, at: datetime) -> None:
    assert read_demand(write_demand(Demand(wanted, at))) == Demand(wanted, at)
