"""What the garbage collector need not look at again."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from grid.runtime.garbage import LONGEST_REST_SECONDS, LOOK_SECONDS, set_aside
from tests.support.virtual import cancelled, virtual_time


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


@virtual_time
async def test_what_is_there_at_the_start_and_after_the_first_lists_is_set_aside_and_nothing_later() -> None:
    is_synced = False
    task = asyncio.create_task(set_aside(lambda: is_synced))
    await asyncio.sleep(5 * LOOK_SECONDS)
    at_start = gc.get_freeze_count()
    listed: list[list[int]] = [[] for _ in range(10_000)]
    is_synced = True
    await asyncio.sleep(2 * LOOK_SECONDS)
    synced = gc.get_freeze_count()
    assert synced >= at_start + len(listed) > len(listed)
    later: list[list[int]] = [[] for _ in range(10_000)]
    await asyncio.sleep(100 * LOOK_SECONDS)
    assert gc.get_freeze_count() < synced + len(later)
    await cancelled(task)


@virtual_time
async def test_the_collector_rests_while_the_first_lists_come() -> None:
    is_synced = False
    task = asyncio.create_task(set_aside(lambda: is_synced))
    await asyncio.sleep(5 * LOOK_SECONDS)
    assert not gc.isenabled()
    is_synced = True
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert gc.isenabled()
    await cancelled(task)


@virtual_time
async def test_a_cluster_that_is_away_does_not_keep_the_collector_from_its_work() -> None:
    task = asyncio.create_task(set_aside(lambda: False))
    await asyncio.sleep(LONGEST_REST_SECONDS - LOOK_SECONDS)
    assert not gc.isenabled()
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert gc.isenabled()
    await cancelled(task)


@virtual_time
async def test_a_process_that_ends_before_its_first_lists_gives_the_collector_back() -> None:
    task = asyncio.create_task(set_aside(lambda: False))
    await asyncio.sleep(LOOK_SECONDS)
    await cancelled(task)
    assert gc.isenabled()
