"""Keeps the pauses of Python's garbage collector short.

A full collection looks at everything that it tracks, on the loop: modules and templates alone are 115,000 objects, 30 to 60 ms, for
which one of a hundred requests to the proxy waited, and a thousand open pages 350,000. So what survives one is set aside, and the next
looks only at what has come since.

What is set aside is freed only when nothing refers to it any more; if it dies in a cycle, it stays. Therefore all is looked at again
when the process has allocated a quarter more than the last time. Counting what is set aside itself would take 100 ms.

While the first lists come the collector rests: they bring millions of objects that stay, and going through those again and again takes
a fifth of the time. Not for longer than a minute, because the cluster may be away, and what dies in a cycle meanwhile is kept. Then the
memory that the lists took while they were read goes back to the system, which C's library would keep for good: a tenth of a proxy.
"""

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

LOOK_SECONDS = 1.0
LONGEST_REST_SECONDS = 60.0
COUNT_SECONDS = 60.0  # between two looks whether so much has been allocated
# Objects at work (waiting tasks, timers) lie all over the memory: on a busy machine a collection takes 10 µs for each. Each third one is
# full and sets aside what it finds, so none has more than some 2,100 to look at, 5 to 20 ms. Setting aside after each would be shorter
# still, but of a page's objects, which are often in cycles, twice as many would stay.
THRESHOLDS = (700, 0, 0)
LEAST_GROWTH = 1_000_000  # blocks, some 80 MB; looking at all again for fewer would be more pauses than they are worth


def give_back() -> None:
    """Return memory that is free to the system, where C's library is one that can."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


async def set_aside(is_synced: Callable[[], bool], *, give_back: Callable[[], None] = give_back) -> None:
    """Do so until cancelled; `is_synced` says that the first lists have come."""
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(*THRESHOLDS)
        _look_at_all()
        gc.disable()
        rested = 0.0
        while not is_synced() and rested < LONGEST_REST_SECONDS:
            await asyncio.sleep(LOOK_SECONDS)
            rested += LOOK_SECONDS
        give_back()
        gc.freeze()  # before it is looked at for the first time: that would be the longest pause of all
        gc.enable()
        gc.callbacks.append(_set_survivors_aside)
        before = sys.getallocatedblocks()
        while True:
            await asyncio.sleep(COUNT_SECONDS)
            now = sys.getallocatedblocks()
            before = min(before, now)
            if now > before + max(LEAST_GROWTH, before // 4):
                _look_at_all()
                before = sys.getallocatedblocks()
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
        if _set_survivors_aside in gc.callbacks:
            gc.callbacks.remove(_set_survivors_aside)
        gc.unfreeze()


def _look_at_all() -> None:
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    # Python puts a full collection off until a quarter more has come than the last one left: let that be this one, with nothing.
    gc.collect()


def _set_survivors_aside(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
