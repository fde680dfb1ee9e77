"""What Prometheus reads of one web process."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from grid.runtime.metrics import MetricsEndpoint
from grid.watch.store import Freshness

CACHES = {
    "pods": Freshness(synced=True, behind_seconds=0.0, error=""),
    "nodes": Freshness(synced=True, behind_seconds=12.5, error="The cluster does not answer."),
    "events": Freshness(synced=False, behind_seconds=0.0, error="events is forbidden"),
}


@pytest.fixture
async def url() -> AsyncIterator[str]:
    server = MetricsEndpoint(lambda: CACHES, lambda: 0.25)
    port = await server.start("127.0.0.1", 0)
    yield f"http://127.0.0.1:{port}"
    await server.stop()


async def test_each_cache_says_how_far_it_is_behind_unless_it_was_never_filled(url: str) -> None:
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


async def test_the_loop_says_how_long_something_waited_for_it(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        assert "compute_grid_loop_longest_wait_seconds 0.25" in (await answer.text()).splitlines()


async def test_nothing_else_is_answered_there(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as answer:
        assert answer.status == 404
