"""What the garbage collector need not look at again."""

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from grid import proxy_asgi
from grid.database import threads as database
from grid.runtime import start_runtime, stop_runtime
from grid.runtime.garbage import COUNT_SECONDS, LEAST_GROWTH, LONGEST_REST_SECONDS, LOOK_SECONDS, THRESHOLDS, set_aside
from tests.support.virtual import cancelled, virtual_time

# Each looks through all tests that were collected, which takes seconds among ten thousand.
pytestmark = pytest.mark.slow


class Knot:
    """Something that dies in a cycle."""

    def __init__(self) -> None:
        self.itself = self


@asynccontextmanager
async def setting_aside(*, is_synced: bool = True) -> AsyncIterator[None]:
    thresholds = gc.get_threshold()
    task = asyncio.create_task(set_aside(lambda: is_synced))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        await cancelled(task)
        assert gc.isenabled()
        assert not gc.get_freeze_count()
        assert gc.get_threshold() == thresholds


@virtual_time
async def test_garbage_cycle_after_freezing_is_collected_eventually() -> None:
    async with setting_aside():
        knot = Knot()
        watched = weakref.ref(knot)
        gc.collect()
        del knot
        await asyncio.sleep(10 * COUNT_SECONDS)
        gc.collect()
        assert watched() is not None
        listed: list[list[int]] = [[] for _ in range(LEAST_GROWTH + sys.getallocatedblocks() // 4)]
        gc.collect()
        await asyncio.sleep(2 * COUNT_SECONDS)
        assert watched() is None
        assert gc.get_freeze_count() > len(listed)


@virtual_time
async def test_absent_cluster_does_not_keep_collector_disabled() -> None:
    async with setting_aside(is_synced=False):
        await asyncio.sleep(LONGEST_REST_SECONDS - LOOK_SECONDS)
        assert not gc.isenabled()
        await asyncio.sleep(2 * LOOK_SECONDS)
        assert gc.isenabled()


@virtual_time
async def test_memory_of_first_lists_is_given_back_once() -> None:
    synced, given = [False], list[str]()
    task = asyncio.create_task(set_aside(lambda: synced[0], give_back=lambda: given.append("back")))
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert given == []
    synced[0] = True
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert given == ["back"]
    await asyncio.sleep(3 * COUNT_SECONDS)
    assert given == ["back"]
    await cancelled(task)


@pytest.mark.parametrize(
    ("start", "stop"), [(start_runtime, stop_runtime), (proxy_asgi.start, proxy_asgi.stop)], ids=["web", "proxy"]
)
@pytest.mark.django_db(transaction=True)
async def test_pages_and_proxy_set_aside_what_stays(start: Callable[[], Any], stop: Callable[[], Any]) -> None:
    before = gc.get_threshold()
    await start()
    try:
        await asyncio.sleep(0)
        assert gc.get_threshold() == THRESHOLDS
    finally:
        await stop()
        await database.close_threads()
    assert gc.get_threshold() == before
