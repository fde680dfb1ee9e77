"""What the loop's watch says of a loop that was kept from its work."""

import asyncio

import pytest

from grid.runtime.metrics import REMEMBERED_SECONDS, LoopWatch
from tests.support.virtual import cancelled, virtual_time


@virtual_time
async def test_longest_loop_wait_is_reported_and_forgotten_after_minute() -> None:
    loop, blocked = asyncio.get_running_loop(), 0.0
    watch = LoopWatch(clock=lambda: loop.time() + blocked)
    task = asyncio.create_task(watch.run())
    await asyncio.sleep(0.5)
    assert watch.longest() == pytest.approx(0.0)
    blocked = 0.3
    await asyncio.sleep(0.5)
    assert watch.longest() == pytest.approx(0.3)
    await asyncio.sleep(REMEMBERED_SECONDS - 5)
    assert watch.longest() == pytest.approx(0.3)
    await asyncio.sleep(10)
    assert watch.longest() == pytest.approx(0.0)
    await cancelled(task)
