"""A value that is read beside the pages: fresh enough, and in nobody's way when it takes long or fails."""

import asyncio
from datetime import timedelta

from dashboard.shell.pages.periodic import FIRST_SECONDS, PeriodicRead
from tests.support.builders import MOMENT
from tests.support.virtual import loop_time, passes, virtual_time


class Source:
    def __init__(self) -> None:
        self.reads = 0
        self.seconds = 0.0
        self.is_broken = False

    async def read(self) -> int:
        self.reads += 1
        await asyncio.sleep(self.seconds)
        if self.is_broken:
            raise OSError
        return self.reads


def periodic(source: Source) -> PeriodicRead[int]:
    return PeriodicRead(source.read, clock=lambda: MOMENT + timedelta(seconds=loop_time()))


@virtual_time
async def test_periodic_value_is_reread_when_too_old() -> None:
    source = Source()
    value = periodic(source)
    assert await value.value(5) == 1
    await passes(4)
    assert await value.value(5) == 1
    await passes(2)
    await value.value(5)
    await passes(0.1)
    assert await value.value(5) == 2
    assert source.reads == 2


@virtual_time
async def test_stuck_reading_delays_nobody_and_reports_silence() -> None:
    source = Source()
    value = periodic(source)
    await value.value(5)
    source.seconds = 60
    await passes(6)
    began = MOMENT + timedelta(seconds=loop_time())
    assert await value.value(5) == 1
    assert value.silent_since is None
    await passes(4)
    assert await value.value(5) == 1
    assert value.silent_since == began
    await passes(60)
    assert value.silent_since is None
    assert source.reads == 2


@virtual_time
async def test_slow_first_reading_answers_nothing_yet() -> None:
    source = Source()
    source.seconds = 30
    value = periodic(source)
    assert await value.value(5) is None
    assert loop_time() == FIRST_SECONDS
    await passes(30)
    assert await value.value(5) == 1


@virtual_time
async def test_failed_reading_keeps_the_value_and_is_retried() -> None:
    source = Source()
    value = periodic(source)
    await value.value(5)
    source.is_broken = True
    await passes(6)
    await value.value(5)
    await passes(1)
    assert await value.value(5) == 1
    source.is_broken = False
    await passes(6)
    await value.value(5)
    await passes(1)
    assert await value.value(5) == 3
