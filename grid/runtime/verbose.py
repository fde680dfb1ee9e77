"""Reads every few seconds whether this process is to log more. While the database does not answer, what was known ends in its time."""

import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from grid.database.periodic import PeriodicRunner, PeriodicTask, RunsIn
from grid.database.trouble import TroubleLog
from grid.logs.verboselogging import VerboseTimes, times_of
from grid.observability import logcontext

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 5.0


class VerbosityFollower:
    """Follows it for one process of a component; `run` runs synchronous work of the database."""

    def __init__(
        self, component: str, run: Callable[..., Awaitable[VerboseTimes]], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._component = component
        self._run = run
        self._clock = clock
        self._times = VerboseTimes()

    async def run(self) -> None:
        """Follow it until cancelled, in a process that has no other periodic tasks."""
        runner = PeriodicRunner(TroubleLog(time.monotonic), clock=lambda: datetime.now(UTC), rng=random.Random())
        await runner.run([self.periodic()])

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("verbose logs", PERIOD_SECONDS, self.run_once, RunsIn.EVERY_PROCESS, within=self._following)

    @asynccontextmanager
    async def _following(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            logcontext.apply(0.0, {}, now=self._clock())

    async def run_once(self) -> None:
        """Read it and apply it; what cannot be read stays as it was, until its time is over."""
        known = self._times
        try:
            self._times = await self._run(times_of, self._component, datetime.fromtimestamp(self._clock(), UTC))
        finally:
            logcontext.apply(self._times.until, self._times.executions, now=self._clock())
        if known != self._times:
            executions = ",".join(self._times.executions) or "none"
            is_all = self._times.until > self._clock()
            logger.info("verbose logs changed component=%s all=%s executions=%s", self._component, is_all, executions)
