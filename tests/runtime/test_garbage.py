"""What the garbage collector need not look at again."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from grid.runtime.garbage import LOOK_SECONDS, set_aside
from tests.support.virtual import cancelled, virtual_time


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


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
