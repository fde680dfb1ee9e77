"""Probes: alive whenever the process answers, ready only with tables and fresh caches, and with the reason when not."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from grid.runtime import Runtime, new_runtime, using_runtime
from tests.support.cluster import FakeCluster


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    runtime = new_runtime(FakeCluster())
    with using_runtime(runtime):
        yield runtime


def synced(runtime: Runtime) -> None:
    stores: tuple[Any, ...] = (runtime.pods, runtime.nodes, runtime.events, runtime.config_maps, runtime.autoscalers)
    for store in stores:
        store.mark_synced(runtime.monotonic())


def test_it_is_alive_without_a_login(db: None, client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_it_is_ready_when_the_caches_are_filled(db: None, client: Client, runtime: Runtime) -> None:
    synced(runtime)
    assert client.get("/readyz").status_code == 200


def test_before_the_first_lists_it_is_not_ready(db: None, client: Client, runtime: Runtime) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["problems"]


def test_with_a_stale_watch_it_is_not_ready_and_says_why(db: None, client: Client, runtime: Runtime) -> None:
    synced(runtime)
    runtime.pods.mark_failed("The cluster cannot be reached.")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["problems"] == ["The cluster cannot be reached."]


def test_without_its_tables_it_is_not_ready(db: None, client: Client, runtime: Runtime) -> None:
    synced(runtime)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE grid_execution RENAME TO elsewhere")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "has it been migrated?" in answer.json()["problems"][0]
