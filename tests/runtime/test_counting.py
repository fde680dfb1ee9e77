"""What each process tells Prometheus has names and units by its conventions, and no label without a bound, whoever asks for what."""

from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver
from pytest_django import Settings

from dashboard.shell.middleware import measured
from grid import proxy_asgi
from grid.database import threads as database
from grid.diagnosis.startup import Phase
from grid.models import Kind, State
from grid.observability import telemetry
from grid.runtime import start_runtime, stop_runtime
from tests.support.ports import free_ports
from tests.support.prometheus import complaints

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
