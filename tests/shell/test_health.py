"""Probes: alive whenever the process answers, ready while it can answer people, fresh while its caches follow the cluster, and with the
reason when not."""

import html
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from grid.kube.resources import EVENTS
from grid.metrics.sources import MetricsApi
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, lives_of, new_runtime, started, using_runtime
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled, until, virtual_time


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    runtime = new_runtime({LOCAL: FakeCluster()})
    with using_runtime(runtime):
        yield runtime


def synced(runtime: Runtime) -> None:
    stores: tuple[Any, ...] = (runtime.pods, runtime.nodes, runtime.events, runtime.config_maps, runtime.autoscalers)
    for store in stores:
        store.mark_synced(runtime.monotonic())


def test_readiness_does_not_need_the_cluster(db: None, client: Client, runtime: Runtime) -> None:
    assert client.get("/readyz").json() == {"status": "ok", "problems": []}


def test_without_its_tables_it_is_not_ready(db: None, client: Client, runtime: Runtime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE grid_execution RENAME TO elsewhere")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "has it been migrated?" in answer.json()["problems"][0]


def test_where_nothing_can_be_written_it_is_not_ready(
    db: None, client: Client, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    (problem,) = answer.json()["problems"]
    assert problem.startswith("Nothing can be written to the temporary folder")
    assert problem in caplog.text


def test_freshness_fails_before_first_lists_and_names_caches(client: Client, runtime: Runtime) -> None:
    answer = client.get("/freshz")
    assert answer.status_code == 503
    assert "The cache pods has not been filled yet." in answer.json()["problems"]


def test_freshness_holds_when_all_caches_follow(client: Client, runtime: Runtime) -> None:
    synced(runtime)
    assert client.get("/freshz").json() == {"status": "ok", "problems": []}


def test_freshness_fails_with_broken_watch_and_hides_cluster_words(client: Client, runtime: Runtime) -> None:
    synced(runtime)
    runtime.pods.mark_failed("The API server at 10.0.0.1 cannot be reached.")
    answer = client.get("/freshz")
    assert answer.status_code == 503
    assert answer.json()["problems"] == ["The cache pods is 0 s behind the cluster."]


def test_missing_right_keeps_readiness_and_is_shown_on_pages(admin_client: Client) -> None:
    """As where `deploy/access.yaml` was applied in part: every replica is refused the same list."""
    refusal = 'events is forbidden: User "web" cannot list resource "events" in API group "" at the cluster scope'
    sentence = "The right to list events in the whole cluster is missing: an admin of the cluster has to apply deploy/access.yaml."

    @virtual_time
    async def follow(runtime: Runtime) -> None:
        lives = lives_of(runtime, MetricsApi)
        del lives["executions"]  # the database is the test's
        tasks = started(lives)
        await until(lambda: runtime.pods.freshness(0).synced and sentence in runtime.events.freshness(0).error)
        for task in tasks:
            await cancelled(task)

    cluster = FakeCluster()
    cluster.forbidden[EVENTS] = refusal
    with using_runtime(new_runtime({LOCAL: cluster}, monotonic=lambda: 0.0)) as runtime:
        follow(runtime)
        assert admin_client.get("/readyz").status_code == 200
        assert admin_client.get("/freshz").json()["problems"] == ["The cache events has not been filled yet."]
        page = admin_client.get("/infrastructure/")
    assert page.status_code == 200
    assert html.escape(sentence) in page.text
