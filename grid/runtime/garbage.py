"""Keeps the pauses of Python's garbage collector short.

A full collection looks at everything that it tracks, on the loop: modules and templates alone are 115,000 objects, 30 to 60 ms, and
a thousand open pages 350,000. So what survives one is set aside, and the next looks only at what has come since.

What is set aside is freed only when nothing refers to it any more; if it dies in a cycle, it stays. Therefore all is looked at again
when twice as much has been set aside as was there the last time.

While the first lists come the collector rests: they bring millions of objects that stay, and going through those again and again takes
a fifth of the time. Not for longer than a minute, because the cluster may be away, and what dies in a cycle meanwhile is kept.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

LOOK_SECONDS = 1.0
LONGEST_REST_SECONDS = 60.0
COUNT_SECONDS = 60.0  # between two looks whether so much may have been set aside
# Python's own first two, and a full collection after two of the second generation instead of ten: it looks at MOST_AT_ONCE objects.
THRESHOLDS = (700, 10, 2)
MOST_AT_ONCE = 26_000
LEAST_GROWTH = 100_000  # objects; looking at all again for fewer would be more pauses than they are worth


async def set_aside(
    is_synced: Callable[[], bool], *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Do so until cancelled; `is_synced` says that the first lists have come."""
    thresholds, survivors = gc.get_threshold(), _Survivors()
    try:
        gc.set_threshold(*THRESHOLDS)
        _look_at_all()
        gc.disable()
        rested = 0.0
        while not is_synced() and rested < LONGEST_REST_SECONDS:
            await sleep(LOOK_SECONDS)
            rested += LOOK_SECONDS
        gc.freeze()  # before it is looked at for the first time: that would be the longest pause of all
        gc.enable()
        gc.callbacks.append(survivors.set_aside)
        await _look_at_all_after_growth(survivors, sleep)
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
        if survivors.set_aside in gc.callbacks:
            gc.callbacks.remove(survivors.set_aside)
        gc.unfreeze()


async def _look_at_all_after_growth(survivors: "_Survivors", sleep: Callable[[float], Awaitable[None]]) -> None:
    before = gc.get_freeze_count()
    while True:
        await sleep(COUNT_SECONDS)
        if survivors.most <= before + LEAST_GROWTH:
            continue  # counting takes up to 90 ms at 50,000 pods
        survivors.most = 0
        if gc.get_freeze_count() > 2 * before + LEAST_GROWTH:
            _look_at_all()
            before = gc.get_freeze_count()


def _look_at_all() -> None:
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    # Python puts a full collection off until a quarter more has come than the last one left: let that be this one, with nothing.
    gc.collect()


class _Survivors:
    """Sets aside what survives a full collection; `most` is how much that can have been, since somebody set it to 0."""

    def __init__(self) -> None:
        self.most = 0

    def set_aside(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "stop" and info["generation"] == 2:
            gc.freeze()
            self.most += MOST_AT_ONCE
