"""Waiting for the next round of a loop: until its time has come, or an event wakes it."""

import asyncio

from grid.sandbox.client import Clock


async def sleep_or_wake(clock: Clock, seconds: float, wake: asyncio.Event) -> None:
    """Return after the time or as soon as the event is set, whichever is first."""
    sleeper = asyncio.ensure_future(clock.sleep(seconds))
    waker = asyncio.ensure_future(wake.wait())
    try:
        await asyncio.wait({sleeper, waker}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        sleeper.cancel()
        waker.cancel()
        await asyncio.gather(sleeper, waker, return_exceptions=True)
