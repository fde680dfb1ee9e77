"""Looks every few seconds whether this process is to log more. While the database does not answer, what was known ends in its time."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from grid.database.trouble import TroubleLog
from grid.logs.verboselogging import VerboseTimes, times_of
from grid.observability import verbosity

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 5.0

Read = Callable[[str, datetime], Awaitable[VerboseTimes]]


class VerbosityFollower:
    """Follows it for one process of a component; `run` until cancelled."""

    def __init__(self, component: str, read: Read, *, clock: Callable[[], float] = time.time) -> None:
        self._component = component
        self._read = read
        self._clock = clock
        self._times = VerboseTimes()
        self._troubles = TroubleLog(time.monotonic)

    async def run(self) -> None:
        try:
            while True:
                await self.look()
                await asyncio.sleep(PERIOD_SECONDS)
        finally:
            verbosity.apply(0.0, {}, now=self._clock())

    async def look(self) -> None:
        known = self._times
        try:
            self._times = await self._read(self._component, datetime.fromtimestamp(self._clock(), UTC))
        except Exception as error:
            if not self._troubles.are_why(error):
                logger.exception("whether to log more is not known")
        verbosity.apply(self._times.until, self._times.executions, now=self._clock())
        if known != self._times:
            executions = ",".join(self._times.executions) or "none"
            is_all = self._times.until > self._clock()
            logger.info("verbose logs changed component=%s all=%s executions=%s", self._component, is_all, executions)


def reading(run: Callable[..., Awaitable[VerboseTimes]]) -> Read:
    """Return what reads it with `run`, which runs synchronous work of the database."""

    async def read(component: str, now: datetime) -> VerboseTimes:
        return await run(times_of, component, now)

    return read
