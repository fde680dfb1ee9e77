"""What Prometheus reads of each process: names and units by its conventions, and no label without a bound."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import aiohttp
import pytest
from django.db import OperationalError
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from dashboard.shell.middleware import measured
from grid import proxy_asgi
from grid.database import threads as database
from grid.diagnosis.startup import Phase
from grid.executions.ledger import UnsettledWork
from grid.kube.store import Freshness
from grid.models import Kind, State
from grid.observability import telemetry
from grid.runtime import start_runtime, stop_runtime
from grid.runtime.metrics import CacheCollector, MetricsEndpoint, WorkCollector
from tests.support.ports import free_ports
from tests.support.prometheus import complaints

CACHES = {
    "pods": Freshness(synced=True, behind_seconds=0.0, error=""),
    "nodes": Freshness(synced=True, behind_seconds=12.5, error="The cluster does not answer."),
    "events": Freshness(synced=False, behind_seconds=0.0, error="events is forbidden"),
}


@pytest.fixture
async def url() -> AsyncIterator[str]:
    server = MetricsEndpoint(CacheCollector(lambda: CACHES))
    port = await server.start("127.0.0.1", 0)
    yield f"http://127.0.0.1:{port}"
    await server.stop()


async def test_filled_caches_report_how_far_they_lag(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        lines = (await answer.text()).splitlines()
    assert [line for line in lines if line.startswith("compute_grid_cache_")] == [
        'compute_grid_cache_synced{cache="pods"} 1.0',
        'compute_grid_cache_synced{cache="nodes"} 1.0',
        'compute_grid_cache_synced{cache="events"} 0.0',
        'compute_grid_cache_behind_seconds{cache="pods"} 0.0',
        'compute_grid_cache_behind_seconds{cache="nodes"} 12.5',
    ]
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)


async def read(server: MetricsEndpoint) -> dict[tuple[str, tuple[str, ...]], float]:
    """What it answers, by name and the values of the labels in the order of their names."""
    port = await server.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        families = text_string_to_metric_families(await answer.text())
        samples = [sample for family in families for sample in family.samples]
    await server.stop()
    return {(sample.name, tuple(sample.labels.values())): sample.value for sample in samples}


@pytest.mark.parametrize(("leads", "reported"), [(True, 3), (False, None)])
async def test_leading_controller_reports_its_work(leads: bool, reported: int | None) -> None:
    async def read_work() -> UnsettledWork:
        return UnsettledWork({("job", "queued"): 3}, queue_oldest_seconds=90.0)

    work = WorkCollector(read_work, lambda: leads)
    text = await read(MetricsEndpoint(work, refresh=work.refresh))
    assert text["compute_grid_controller_leads", ()] == leads
    assert text.get(("compute_grid_executions", ("job", "queued"))) == reported
    assert text.get(("compute_grid_queue_oldest_seconds", ())) == (90.0 if leads else None)


async def test_without_its_database_a_controller_still_answers() -> None:
    async def away() -> UnsettledWork:
        raise OperationalError("gone")

    work = WorkCollector(away, lambda: True)
    text = await read(MetricsEndpoint(work, refresh=work.refresh))
    assert text["compute_grid_controller_leads", ()] == 1
    assert not [name for name, _ in text if name == "compute_grid_executions"]


async def test_reasons_without_end_are_counted_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "MOST_REASONS", len(telemetry._reasons) + 2)
    for number in range(5):
        telemetry.entered("failed", f"made_up_{number}")
    text = await read(MetricsEndpoint())
    assert text["compute_grid_execution_failures_total", (telemetry.OTHER, "failed")] == 3


HOSTILE = "' OR 1=1; --\n{}"


def value(name: str, **labels: str) -> float:
    return telemetry.REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.mark.parametrize(
    ("setting", "start", "stop"),
    [("METRICS_PORT", start_runtime, stop_runtime), ("PROXY_METRICS_PORT", proxy_asgi.start, proxy_asgi.stop)],
)
@pytest.mark.django_db(transaction=True)
async def test_web_and_proxy_tell_metrics_as_prometheus_wants_them(
    settings: Settings, setting: str, start: Callable[[], Any], stop: Callable[[], Any]
) -> None:
    port = free_ports()
    setattr(settings, setting, port)
    await start()
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            text = await answer.text()
    finally:
        await stop()
        await database.close_threads()
    assert 'compute_grid_cache_synced{cache="pods"} 0.0' in text.splitlines()
    assert complaints(text) == ""


def view_names(resolver: URLResolver, *, namespace: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from view_names(pattern, namespace=inner)
        elif isinstance(pattern, URLPattern):
            yield namespace + (pattern.name or pattern.lookup_str)


def label_values() -> dict[str, dict[str, set[str]]]:
    """The values of each label that are counted so far, by the metric's name."""
    families: dict[str, dict[str, set[str]]] = {}
    for family in telemetry.REGISTRY.collect():
        values = families.setdefault(family.name, {})
        for sample in family.samples:
            for label, value in sample.labels.items():
                values.setdefault(label, set()).add(value)
    return families


@pytest.mark.django_db
def test_no_request_makes_a_new_value_of_a_label(client: Client) -> None:
    others = label_values()["compute_grid_http_request_seconds"].get("route", set())  # of tests with URLs of their own
    for number in range(20):
        client.get(f"/{number}/{HOSTILE}")
        client.get(f"/executions/{number}{HOSTILE}/")
        client.generic(f"MADE-UP-{number}", "/login/")
        client.get(f"/static/{number}")
        hostile = HttpResponse(status=580 + number)
        measured(lambda _, hostile=hostile: hostile)(RequestFactory().get("/"))  # type: ignore[misc]
        telemetry.asked(f"MADE-UP-{number}", 600 + number, 0.1)
        telemetry.proxied(600 + number, 0.1)
    routes = {*view_names(get_resolver()), "static", telemetry.OTHER}
    assert len(routes) < telemetry.MOST_ROUTES
    routes |= others
    bounds = {
        "route": routes,
        "method": {*telemetry.METHODS, telemetry.OTHER},
        "code": {*telemetry.CODES.values(), telemetry.OTHER},
        "vendor": {"sqlite", "postgresql"},
        "result": {"admitted", "deferred", "timed_out", "sent", "refused", "dropped"},
        "ran": {"true", "false"},
        "kind": set(Kind.values),
        "work": {"runs", "schedules"},
        "state": set(State.values),
        "phase": {phase.value for phase in Phase},
    }
    # These have what our own code names, and a test may name some of its own.
    most = {"cache": 50, "task": 50, "page": 100, "reason": telemetry.MOST_REASONS + 1, "le": 50}
    for family, labels in label_values().items():
        for label, values in labels.items():
            assert values <= bounds[label] if label in bounds else len(values) <= most[label], (family, label)
