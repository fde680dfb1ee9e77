"""The worker loop of a work queue, and waiting for the next round of any loop.

A key whose work failed is retried after a growing delay. Level-triggered: the worker reads the current state, so an event that
is lost or repeated changes nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from grid.core.errors import Conflict, GridError
from grid.core.workqueue import WorkQueue
from grid.sandbox.client import Clock

logger = logging.getLogger(__name__)


class AlreadyReported(Exception):
    """The work failed and an event or a condition has reported that, so it is only retried."""


Work = Callable[[str], Awaitable[float | None]]
"""Reconciles one key; returns the seconds until the next reconciliation, or None to wait for a change."""


async def work_off(queue: WorkQueue, work: Work, *, name: str, workers: int = 4) -> None:
    """Process the queue until cancelled. One key's failure never stops the others."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(_worker(queue, work, name))
    finally:
        queue.close()


async def _worker(queue: WorkQueue, work: Work, name: str) -> None:
    while True:
        key = await queue.get()
        try:
            again = await work(key)
        except AlreadyReported as refusal:
            logger.debug("%s key=%s tries again: %s", name, key, refusal)
            queue.retry(key)
        except GridError as error:
            # A conflict means that our copy was old: the mirror is about to receive the newer one.
            logger.log(
                logging.DEBUG if isinstance(error, Conflict) else logging.WARNING,
                "%s key=%s tries again: %s",
                name,
                key,
                error,
            )
            queue.retry(key, at_least=error.retry_after)
        except Exception:
            logger.exception("%s key=%s failed and tries again", name, key)
            queue.retry(key)
        else:
            queue.succeeded(key)
            if again is not None:
                queue.add_later(key, again)
        finally:
            queue.done(key)


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
