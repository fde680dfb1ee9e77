"""What Prometheus reads of one web process."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from django.db import OperationalError
from prometheus_client.parser import text_string_to_metric_families

from grid.executions.ledger import UnsettledWork
from grid.kube.store import Freshness
from grid.observability import telemetry
from grid.runtime.metrics import CacheCollector, MetricsEndpoint, WorkCollector

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
