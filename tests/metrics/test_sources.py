"""Both sources of usage, and the past of the node pools, against what a Prometheus really answers."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from grid.core.errors import ClusterUnavailable
from grid.kube.resources import NODE_METRICS, POD_METRICS
from grid.metrics.expressions import metric_label, node_cpu, node_memory, pod_cpu, pod_memory, pods_waiting
from grid.metrics.history import PrometheusHistory
from grid.metrics.sources import MetricsApi, NoMetrics, Prometheus, WithFallback
from grid.metrics.usage import Usage
from grid.models import PoolSample
from tests.support.cluster import FakeCluster
from tests.support.http_server import Answer, serving

LABEL = "compute-grid.io/node-pool"
START = 29_000_000


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
