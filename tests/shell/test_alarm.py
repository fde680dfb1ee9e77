"""The alarm that is put off without a timer, and the time limit made of it."""

import asyncio

import pytest

from dashboard.shell.pages.deadline_timer import NEVER, Alarm, time_limit
from tests.support.virtual import loop_time, virtual_time


@virtual_time
async def test_alarm_rings_once_at_its_last_set_time() -> None:
    rung = list[float]()
    with Alarm(lambda: rung.append(loop_time())) as alarm:
        alarm.set(1.0)
        alarm.set(5.0)
        alarm.set(3.0)
        await asyncio.sleep(2)
        assert rung == []
        await asyncio.sleep(10)
    assert rung == [pytest.approx(3.0)]


@virtual_time
async def test_time_limit_ends_only_what_is_unfinished() -> None:
    done = 0
    with pytest.raises(TimeoutError):
        async with time_limit() as limit:
            for seconds in (0.5, 0.9, 3.0):
                limit.set(loop_time() + 1)
                await asyncio.sleep(seconds)
                limit.set(NEVER)
                await asyncio.sleep(5)
                done += 1
    assert done == 2
    assert loop_time() == pytest.approx(0.5 + 5 + 0.9 + 5 + 1)
