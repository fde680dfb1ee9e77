"""Keeps the pauses of Python's garbage collector short.

A full collection looks at everything that it tracks, on the loop: modules and templates alone are 115,000 objects, 30 to 60 ms. What stays
as long as the process is set aside, twice: the program itself, and what the first lists brought. Not more often, because what is set aside
is only freed when nothing refers to it: a connection that dies in a cycle would stay for ever.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable

LOOK_SECONDS = 1.0


async def set_aside(
    is_synced: Callable[[], bool], *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Do so at the start, and once more when `is_synced`; then wait for ever."""
    gc.collect()
    gc.freeze()
    while not is_synced():
        await sleep(LOOK_SECONDS)
    gc.collect()
    gc.freeze()
    await asyncio.Event().wait()
