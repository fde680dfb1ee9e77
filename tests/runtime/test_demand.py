"""How many workers a cluster's framework would like to have, as the autoscaler asks for it."""

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.kube.objects import Autoscaler, Metadata
from grid.labels import KEYS
from grid.metrics.demand import METRIC, Demand, read_demand, write_demand
from grid.runtime.demand import OLDEST, DemandServer
from grid.watch.store import Store

NOW = datetime(2026, 3, 4, 9, 0, 0, tzinfo=UTC)
NAMESPACE = "compute-grid"


def autoscaler(id: str, annotation: str) -> Autoscaler:
    metadata = Metadata(
        name=f"cluster-{id}-worker",
        namespace=NAMESPACE,
        resource_version="1",
        labels={KEYS.execution: id},
        annotations={KEYS.demand: annotation},
    )
    return Autoscaler(metadata=metadata)


@pytest.fixture
async def ask() -> AsyncIterator[Any]:
    store: Store[Autoscaler] = Store(
        "autoscalers", indexes={"execution": lambda one: one.metadata.labels.get(KEYS.execution, "")}
    )
    store.replace(
        [
            autoscaler("busy", write_demand(Demand(7, NOW - timedelta(seconds=20)))),
            autoscaler("idle", write_demand(Demand(0, NOW))),
            autoscaler("silent", write_demand(Demand(7, NOW - OLDEST - timedelta(seconds=1)))),
            autoscaler("hostile", '{"wanted": -4, "at": "yesterday"}'),
        ]
    )
    server = DemandServer(store, namespace=NAMESPACE, clock=lambda: NOW)
    port = await server.start("127.0.0.1", 0)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:

        async def get(path: str, **query: str) -> tuple[int, Any]:
            async with session.get(f"https://127.0.0.1:{port}{path}", params=query) as answer:
                return answer.status, await answer.json()

        yield get
    await server.stop()


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
            "timestamp": "2026-03-04T08:59:40Z",
            "value": "7",
        }
    ]


async def test_nothing_to_do_is_a_number_too(ask: Any) -> None:
    _, body = await ask(path(), labelSelector="execution-id=idle")
    assert body["items"][0]["value"] == "0"


@pytest.mark.parametrize("id", ["silent", "hostile", "unknown", "busy,idle"])
async def test_no_number_is_given_where_none_is_fresh(ask: Any, id: str) -> None:
    status, body = await ask(path(), labelSelector=f"execution-id={id}")
    assert (status, body["items"]) == (200, [])


async def test_other_namespaces_have_no_numbers(ask: Any) -> None:
    _, body = await ask(path(namespace="kube-system"), labelSelector="execution-id=busy")
    assert body["items"] == []


@pytest.mark.parametrize("selector", ["", "busy", "app=busy", "execution-id="])
async def test_a_question_about_everything_is_refused_with_what_to_ask(ask: Any, selector: str) -> None:
    status, body = await ask(path(), labelSelector=selector)
    assert (status, body["kind"]) == (400, "Status")
    assert "execution-id" in body["message"]


async def test_another_metric_is_not_there(ask: Any) -> None:
    status, body = await ask(path(metric="queue_length"), labelSelector="execution-id=busy")
    assert (status, body["reason"]) == (404, "NotFound")


async def test_clients_discover_what_is_served(ask: Any) -> None:
    _, resources = await ask("/apis/external.metrics.k8s.io/v1beta1")
    assert [one["name"] for one in resources["resources"]] == [METRIC]
    _, group = await ask("/apis/external.metrics.k8s.io")
    _, groups = await ask("/apis")
    assert group["preferredVersion"]["groupVersion"] == "external.metrics.k8s.io/v1beta1"
    assert [one["name"] for one in groups["groups"]] == ["external.metrics.k8s.io"]


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    read_demand(text)


@pytest.mark.parametrize("wanted", ["-1", str(2**40), "9" * 400, "1.5", "true"])
def test_a_number_that_no_cluster_could_want_is_none(wanted: str) -> None:
    assert read_demand(f'{{"wanted": {wanted}, "at": "2026-11-21T12:00:00Z"}}') is None


@given(st.integers(0, 2**31), st.datetimes(timezones=st.just(UTC)))
def test_what_was_written_is_read_again(wanted: int, at: datetime) -> None:
    assert read_demand(write_demand(Demand(wanted, at))) == Demand(wanted, at)
