"""Usage from both sources and its past, against what they really answer; the poller's rhythm, and what is kept of nodes' use."""

import asyncio
import base64
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from grid.core.errors import ClusterUnavailable
from grid.kube.resources import NODE_METRICS, POD_METRICS
from grid.metrics.expressions import metric_label, node_cpu, node_memory, pod_cpu, pod_memory, pods_waiting
from grid.metrics.external import Authority, ServiceReference
from grid.metrics.history import PrometheusHistory
from grid.metrics.sources import MetricsApi, NoMetrics, Prometheus, UsagePoller, WithFallback
from grid.metrics.usage import KEPT_MINUTES, Measured, RecentUsage, Usage, UsageSample, UsageStore
from grid.models import PoolSample
from tests.support.cluster import FakeCluster
from tests.support.http_server import Answer, serving
from tests.support.virtual import cancelled, passes, virtual_time

LABEL = "compute-grid.io/node-pool"
START = 29_000_000
USAGE = Usage(100, 200)
GIB = 2**30
HOST = "demand.compute-grid-system.svc"


def measuring_cluster() -> FakeCluster:
    cluster = FakeCluster()
    taken = {"timestamp": "2026-03-04T08:59:45Z", "window": "15s"}
    cluster.put(NODE_METRICS, {"metadata": {"name": "n1"}, **taken, "usage": {"cpu": "1500000000n", "memory": "2Gi"}})
    cluster.put(
        POD_METRICS,
        {
            "metadata": {"name": "p1", "namespace": "ns"},
            **taken,
            "containers": [
                {"name": "run", "usage": {"cpu": "250m", "memory": "100Mi"}},
                {"name": "executor", "usage": {"cpu": "1n", "memory": "1Mi"}},
            ],
        },
    )
    return cluster


async def test_metrics_api_gives_nodes_and_summed_pod_containers() -> None:
    measured = await MetricsApi(measuring_cluster()).measure()
    assert measured.nodes == {"n1": Usage(1500, 2 * 2**30)}
    assert measured.pods == {"ns/p1": Usage(251, 101 * 2**20)}
    assert measured.pods_at == {"ns/p1": datetime(2026, 3, 4, 8, 59, 45, tzinfo=UTC).timestamp()}


@pytest.mark.parametrize("timestamp", ["", "soon", "2026-03-04", "0001-01-01T00:00:00+23:59"])
async def test_measurement_without_readable_time_has_unknown_time(timestamp: str) -> None:
    cluster = FakeCluster()
    cluster.put(POD_METRICS, {"metadata": {"name": "p1", "namespace": "ns"}, "timestamp": timestamp, "containers": []})
    assert (await MetricsApi(cluster).measure()).pods_at == {"ns/p1": 0.0}


async def test_the_metrics_api_gives_the_pods_of_one_namespace() -> None:
    cluster = measuring_cluster()
    cluster.put(POD_METRICS, {"metadata": {"name": "p2", "namespace": "other"}, "containers": []})
    assert await MetricsApi(cluster).measure_pods("ns") == {"ns/p1": Usage(251, 101 * 2**20)}
    cluster.unserved = {NODE_METRICS, POD_METRICS}
    for absent in (MetricsApi(cluster).measure(), MetricsApi(cluster).measure_pods("ns")):
        with pytest.raises(NoMetrics, match="metrics-server is not installed"):
            await absent


async def test_unreadable_quantity_is_skipped_alone() -> None:
    cluster = measuring_cluster()
    cluster.put(NODE_METRICS, {"metadata": {"name": "bad"}, "usage": {"cpu": "lots"}})
    measured = await MetricsApi(cluster).measure()
    assert set(measured.nodes) == {"n1"}


def prometheus_answering(vectors: dict[str, list[tuple[dict[str, str], str]]]) -> Answer:
    async def answer(request: web.Request) -> web.Response:
        assert request.path == "/base/api/v1/query"
        result = [{"metric": labels, "value": [1772614800, value]} for labels, value in vectors[request.query["query"]]]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})

    return answer


async def test_prometheus_gives_nodes_and_pods() -> None:
    pod = {"namespace": "ns", "pod": "p1"}
    answer = prometheus_answering(
        {
            node_cpu(): [({"node": "n1"}, "1.2341"), ({}, "7"), ({"node": "n2"}, "NaN")],
            node_memory(): [({"node": "n1"}, "2147483648")],
            pod_cpu(): [(pod, "0.25")],
            pod_memory(): [(pod, "1.05e8"), ({"namespace": "ns"}, "1")],
            pods_waiting(): [(pod, "62.5")],
        }
    )
    async with serving(answer) as server:
        measured = await Prometheus(f"{server.url}/base/", clock=lambda: 7.0).measure()
    assert measured.nodes == {"n1": Usage(1235, 2147483648)}
    assert measured.pods == {"ns/p1": Usage(250, 105_000_000)}
    assert (measured.pods_at, measured.waiting) == ({"ns/p1": 7.0}, {"ns/p1": 62.5})


async def test_prometheus_is_asked_for_the_pods_of_one_namespace() -> None:
    pod = {"namespace": "ns", "pod": "p1"}
    answer = prometheus_answering({pod_cpu("ns"): [(pod, "0.25")], pod_memory("ns"): [(pod, "1.05e8")]})
    async with serving(answer) as server:
        assert await Prometheus(f"{server.url}/base/").measure_pods("ns") == {"ns/p1": Usage(250, 105_000_000)}


async def test_prometheus_without_containers_says_what_to_scrape() -> None:
    asked = (node_cpu(), node_memory(), pod_cpu(), pod_memory(), pods_waiting())
    nothing = prometheus_answering({each: [] for each in asked})
    async with serving(nothing) as server:
        with pytest.raises(NoMetrics, match="cAdvisor"):
            await Prometheus(f"{server.url}/base").measure()


@pytest.mark.parametrize(
    "response",
    [
        web.Response(status=503, text="secret"),
        web.Response(status=200, text="<html>secret"),
        web.json_response({"status": "success"}),
        web.json_response({"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}),
    ],
    ids=["down", "not JSON", "no data", "no vector"],
)
async def test_a_failing_prometheus_is_an_outage_without_its_text(response: web.Response) -> None:
    calls = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal calls
        calls += 1
        return web.Response(status=response.status, body=response.body, content_type=response.content_type)

    async with serving(answer) as server:
        with pytest.raises(ClusterUnavailable) as raised:
            await Prometheus(server.url.replace("//", "//user:secret@")).measure()
    assert "secret" not in str(raised.value)
    assert calls <= 5, "each of the five queries once, no retries inside"


async def test_the_cluster_measures_while_prometheus_does_not(caplog: pytest.LogCaptureFixture) -> None:
    asked = (node_cpu(), node_memory(), pod_cpu(), pod_memory(), pods_waiting())
    async with serving(prometheus_answering({query: [] for query in asked})) as server:
        has_scraped_nothing = Prometheus(f"{server.url}/base")
        both = WithFallback(has_scraped_nothing, MetricsApi(measuring_cluster()))
        for _ in range(2):
            assert (await both.measure()).nodes == {"n1": Usage(1500, 2 * 2**30)}
        assert caplog.text.count("metrics.k8s.io is asked") == 1
        address = server.url
    gone, cluster = Prometheus(address), FakeCluster()
    assert (await WithFallback(gone, MetricsApi(measuring_cluster())).measure_pods("ns")).keys() == {"ns/p1"}
    cluster.unserved = {NODE_METRICS, POD_METRICS}
    with pytest.raises(ClusterUnavailable, match="Prometheus"):
        await WithFallback(gone, MetricsApi(cluster)).measure()


def history(url: str) -> PrometheusHistory:
    return PrometheusHistory(url, pool_label=LABEL)


def answering(*series: tuple[str, list[list[Any]]]) -> Answer:
    async def answer(request: web.Request) -> web.Response:
        assert request.path == "/base/api/v1/query_range"
        assert (request.query["start"], request.query["end"]) == (str(START * 60), str((START + 6) * 60))
        assert request.query["step"] == "180s"
        result = [{"metric": {"column": name}, "values": values} for name, values in series]
        return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": result}})

    return answer


async def read(url: str) -> dict[int, dict[str, int]]:
    return await asyncio.to_thread(history(url).read, "gpu", START, START + 6, 3)


async def test_history_values_come_by_minute_without_non_numbers() -> None:
    at = [START * 60, (START + 3) * 60, (START + 6) * 60]
    answer = answering(
        ("nodes", [[at[0], "2"], [at[1], "3"]]), ("used_millicores", [[at[0], "1499.6"], [at[1], "NaN"], [at[2], "-1"]])
    )
    async with serving(answer) as server:
        minutes = await read(f"{server.url}/base/")
    assert minutes == {
        START: {"nodes": 2, "used_millicores": 1500},
        START + 3: {"nodes": 3},
        START + 6: {"used_millicores": 0},
    }


@pytest.mark.parametrize(
    "body", ['{"status": "success"}', "[]", "no", '{"data": {"result": [{"metric": {}, "values": []}]}}']
)
async def test_senseless_answer_is_an_outage_and_hides_password(body: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=body, content_type="application/json")

    async with serving(answer) as server:
        with pytest.raises(ClusterUnavailable) as raised:
            await read(server.url.replace("//", "//user:secret@"))
    assert "secret" not in str(raised.value)


def test_single_query_covers_all_prometheus_columns() -> None:
    asked = history("http://p").query("gpu")
    columns = [field.name for field in PoolSample._meta.get_fields()]
    own = ("id", "pool", "minute", "pods_waiting", "executions_running", "executions_waiting")
    assert [name for name in columns if name not in own and f'"column", "{name}"' not in asked] == []
    assert asked.count("(") == asked.count(")")
    assert asked.count('kube_node_labels{label_compute_grid_io_node_pool="gpu"}') == asked.count("kube_node_labels")
    whole = history("http://p").query(None)
    assert 'kube_node_labels{label_compute_grid_io_node_pool!="platform",' in whole  # no execution may have its room
    assert '_platform_node!="true"}' in whole and "kube_node_labels{}" not in whole
    assert r'="a\"b\\c"' in history("http://p").query('a"b\\c')


@pytest.mark.parametrize(
    ("label", "metric"),
    [(LABEL, "label_compute_grid_io_node_pool"), ("nodePool", "label_node_pool"), ("a.b/C-d", "label_a_b_c_d")],
)
def test_a_label_is_named_as_kube_state_metrics_does(label: str, metric: str) -> None:
    assert metric_label(label) == metric


class Scripted:
    """A source that answers, or fails, as told."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None

    async def measure(self) -> Measured:
        self.calls += 1
        if self.error:
            raise self.error
        return Measured({"n1": USAGE}, {"ns/p": USAGE})


@asynccontextmanager
async def polling(source: Scripted) -> AsyncIterator[tuple[UsageStore, list[str]]]:
    store, published = UsageStore(asyncio.get_running_loop().time), list[str]()
    task = asyncio.create_task(UsagePoller(source, store, published.append, rng=random.Random(1)).run())
    try:
        yield store, published
    finally:
        assert not task.done()
        await cancelled(task)


@virtual_time
async def test_usage_is_measured_about_every_fifteen_seconds() -> None:
    source = Scripted()
    async with polling(source) as (store, published):
        await passes(600)
        assert 36 <= source.calls <= 45
        assert len(published) == source.calls
        assert (store.node("n1"), store.pod("ns/p"), store.unavailable) == (USAGE, USAGE, "")
        assert store.node("other") is None


@virtual_time
async def test_absent_metrics_are_asked_for_seldom_and_said_once() -> None:
    source = Scripted()
    source.error = NoMetrics("There is no metrics-server.")
    async with polling(source) as (store, published):
        await passes(3600)
        assert source.calls <= 14
        assert store.unavailable == "There is no metrics-server."
        assert len(published) == 1
        source.error = None
        await passes(400)
        assert store.node("n1") == USAGE


@virtual_time
async def test_usage_survives_short_outage_but_not_a_long_one() -> None:
    source = Scripted()
    async with polling(source) as (store, _):
        await passes(1)
        source.error = ClusterUnavailable("The server does not answer.")
        await passes(60)
        assert store.node("n1") == USAGE
        assert "does not answer" in store.unavailable
        await passes(120)
        assert store.node("n1") is None
        source.error = None
        await passes(20)
        assert (store.node("n1"), store.unavailable) == (USAGE, "")


@virtual_time
async def test_a_fault_of_our_own_does_not_end_it() -> None:
    source = Scripted()
    source.error = LookupError("unforeseen")
    async with polling(source) as (store, _):
        await passes(1)
        assert "was not understood; the log says more" in store.unavailable
        source.error = None
        await passes(20)
        assert store.unavailable == ""


@pytest.mark.parametrize(
    ("rounds", "samples"),
    [
        ([(7, 200, GIB), (7, 900, GIB), (7, 100, 2 * GIB), (8, 300, 0)], [(7, 900, 2048), (8, 300, 0)]),
        ([(100, 1, GIB), (101, 1, GIB), (105, 1, GIB)], [(100, 1, 1024), (101, 1, 1024), (105, 1, 1024)]),
        ([(50, 5, GIB), (20, 7, GIB)], [(50, 7, 1024)]),
        ([(1, 2**40, 2**80)], [(1, 2**32 - 2, 2**32 - 2)]),
    ],
    ids=["the highest of a minute", "a gap", "a clock that was set back", "beyond capacity"],
)
def test_each_measured_minute_has_a_sample(
    rounds: list[tuple[int, int, int]], samples: list[tuple[int, int, int]]
) -> None:
    recent = RecentUsage()
    for minute, cpu, memory in rounds:
        recent.add(minute, {"n1": Usage(cpu, memory)})
    assert recent.of("n1") == samples


def test_usage_older_than_half_an_hour_is_dropped() -> None:
    recent = RecentUsage()
    for minute in range(1000, 1100):
        recent.add(minute, {"n1": Usage(minute, GIB)})
    assert recent.of("n1") == [UsageSample(minute, minute, 1024) for minute in range(1100 - KEPT_MINUTES, 1100)]
    recent.add(5000, {"n2": Usage(1, GIB)})
    assert recent.of("n1") == []


def test_changing_nodes_take_bounded_memory() -> None:
    recent = RecentUsage()
    for minute in range(1, 500):
        recent.add(minute, {f"node-{minute}": Usage(1, GIB)})
    held = recent._nodes
    assert len(held) == KEPT_MINUTES
    assert all(sys.getsizeof(samples) < 400 for samples in held.values())


def verified(authority: Authority, chain: str, host: str) -> None:
    """As a strict client does it. Raises VerificationError."""
    (leaf,) = x509.load_pem_x509_certificates(chain.encode())
    store = Store(x509.load_pem_x509_certificates(authority.pem.encode()))
    PolicyBuilder().store(store).build_server_verifier(x509.DNSName(host)).verify(leaf, [])


def test_authority_is_identical_in_each_process() -> None:
    assert Authority("secret").bundle == Authority("secret").bundle
    assert base64.b64decode(Authority("secret").bundle).decode() == Authority("secret").pem


def test_certificate_of_a_process_is_trusted_by_another() -> None:
    chain = Authority("secret").issue(HOST, now=datetime.now(UTC))
    verified(Authority("secret"), chain, HOST)


@pytest.mark.parametrize(("secret", "host"), [("another", HOST), ("secret", "kubernetes.default.svc")])
def test_certificate_is_for_one_installation_and_name(secret: str, host: str) -> None:
    chain = Authority("secret").issue(HOST, now=datetime.now(UTC))
    with pytest.raises(VerificationError):
        verified(Authority(secret), chain, host)


def test_a_service_is_named_by_name_namespace_and_port() -> None:
    service = ServiceReference.parse("demand.compute-grid-system:443")
    assert (service.name, service.namespace, service.port) == ("demand", "compute-grid-system", 443)
    assert service.host == HOST
