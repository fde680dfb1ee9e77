"""What the garbage collector need not look at again."""

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from grid.runtime.garbage import COUNT_SECONDS, LEAST_GROWTH, LONGEST_REST_SECONDS, LOOK_SECONDS, set_aside
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
async def test_objects_surviving_full_collection_are_frozen() -> None:
    async with setting_aside():
        before = gc.get_freeze_count()
        listed: list[list[int]] = [[] for _ in range(10_000)]
        gc.collect()
        assert gc.get_freeze_count() >= before + len(listed)
        gc.collect()
        assert not gc.get_objects(generation=2)


@virtual_time
async def test_full_collection_never_scans_many_new_objects() -> None:
    looked_at: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            looked_at.append(sum(len(gc.get_objects(generation)) for generation in range(3)))

    async with setting_aside():
        gc.callbacks.append(count)
        try:
            kept: list[list[int]] = [[] for _ in range(200_000)]
        finally:
            gc.callbacks.remove(count)
    assert len(kept) / 3_000 <= len(looked_at)
    assert max(looked_at) <= 3_000


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
async def test_collector_pauses_during_first_lists_and_freezes_them() -> None:
    is_synced = False
    task = asyncio.create_task(set_aside(lambda: is_synced))
    await asyncio.sleep(5 * LOOK_SECONDS)
    before = gc.get_freeze_count()
    listed: list[list[int]] = [[] for _ in range(10_000)]
    assert not gc.isenabled()
    is_synced = True
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(listed)
    await cancelled(task)


@virtual_time
async def test_absent_cluster_does_not_keep_collector_disabled() -> None:
    async with setting_aside(is_synced=False):
        await asyncio.sleep(LONGEST_REST_SECONDS - LOOK_SECONDS)
        assert not gc.isenabled()
        await asyncio.sleep(2 * LOOK_SECONDS)
        assert gc.isenabled()


@virtual_time
async def test_process_ending_early_reenables_the_collector() -> None:
    async with setting_aside(is_synced=False):
        await asyncio.sleep(LOOK_SECONDS)
        assert gc.get_freeze_count()
