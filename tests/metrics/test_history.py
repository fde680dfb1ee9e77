"""The past of the node pools as a Prometheus tells it."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from grid.core.errors import ClusterUnavailable
from grid.metrics.expressions import metric_label
from grid.metrics.history import PrometheusHistory
from grid.models import PoolSample
from tests.support.http_server import Answer, serving

LABEL = "compute-grid.io/node-pool"
START = 29_000_000


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
