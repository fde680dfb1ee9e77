"""Keeps the pauses of Python's garbage collector short.

A full collection looks at everything that it tracks, on the loop: modules and templates alone are 115,000 objects, 30 to 60 ms. What stays
as long as the process is set aside, twice: the program itself, and what the first lists brought. Not more often, because what is set aside
is only freed when nothing refers to it: a connection that dies in a cycle would stay for ever.

While the first lists come the collector rests: they bring millions of objects that stay, and going through those again and again takes
a fifth of the time. Not for longer than a minute, because the cluster may be away, and what dies in a cycle meanwhile is kept.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable

LOOK_SECONDS = 1.0
LONGEST_REST_SECONDS = 60.0


async def set_aside(
    is_synced: Callable[[], bool], *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Do so at the start, and once more when `is_synced`; then wait for ever."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        rested = 0.0
        while not is_synced() and rested < LONGEST_REST_SECONDS:
            await sleep(LOOK_SECONDS)
            rested += LOOK_SECONDS
    finally:
        gc.enable()
    while not is_synced():
        await sleep(LOOK_SECONDS)
    gc.collect()
    gc.freeze()
    await asyncio.Event().wait()
