"""The periodic tasks of each web process, as `grid.controller.periodictasks` lists those of the leader."""

import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicRunner, PeriodicTask, RunsIn
from grid.database.threads import background
from grid.database.trouble import TroubleLog
from grid.logs import knowledge
from grid.logs.verboselogging import VerboseTimes, times_of
from grid.models.dataplane import LOCAL
from grid.observability import logcontext
from grid.platformhealth.outages import NOTE_SECONDS, Outage, note, present_failure
from grid.runtime.contention import ContentionNotices
from grid.runtime.poolsamples import PoolSampler

if TYPE_CHECKING:
    from grid.runtime import Runtime

logger = logging.getLogger(__name__)

KNOWLEDGE_SECONDS = 20.0
VERBOSITY_SECONDS = 15.0


def periodic_tasks(runtime: "Runtime") -> list[PeriodicTask]:
    local = runtime.data_planes[LOCAL]
    return [
        # What an admin has edited of the log findings; until it can be read, the entries before stay in force.
        PeriodicTask(
            "knowledge base", KNOWLEDGE_SECONDS, partial(background.run, knowledge.refresh), RunsIn.EVERY_PROCESS
        ),
        PoolSampler(local, clock=time.time, monotonic=runtime.monotonic).periodic(),
        ContentionNotices(local.contention, runtime.executions).periodic(),
        local.templates.periodic(),
        VerbosityFollower("web", background.run).periodic(),
        outages_task(runtime, background.run),
    ]


def outages_task(runtime: "Runtime", database: Callable[..., Awaitable[Any]]) -> PeriodicTask:
    """Note outages while nobody leads, as the leader does while it leads, and read what keeps a controller from its work."""

    async def run_once() -> None:
        now, lease, failure = runtime.clock(), runtime.data_planes[LOCAL].controller, None
        try:
            failure = await database(present_failure, LOCAL, now)
        finally:
            lease.failure = failure
        for outage in present_outages(runtime, now):
            await database(note, LOCAL, outage, now)

    return PeriodicTask("outages", NOTE_SECONDS, run_once, RunsIn.EVERY_PROCESS)


def present_outages(runtime: "Runtime", now: datetime) -> Iterator[Outage]:
    """Yield what a leader would record if there were one."""
    lease, freshness = runtime.data_planes[LOCAL].controller, runtime.freshness()
    unheld = lease.unheld(runtime.monotonic())
    if lease.is_known and unheld is None:
        return
    if (trouble := freshness.trouble) is not None:
        sentence = _("{kind}: {error}", kind=trouble.value, error=freshness.error)
        yield Outage("api-server", sentence, now - timedelta(seconds=freshness.trouble_seconds))
    if unheld is not None and unheld.since is not None and lease.failure is None:
        sentence = _("No controller is running: nothing is started, stopped or scaled.")
        yield Outage("controller", sentence, unheld.since)


class VerbosityFollower:
    """Reads every few seconds whether this process of a component is to log more; `run` runs synchronous work of the database. While that
    does not answer, what was known ends in its time."""

    def __init__(
        self, component: str, run: Callable[..., Awaitable[VerboseTimes]], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._component, self._run, self._clock = component, run, clock
        self._times = VerboseTimes()

    async def run(self) -> None:
        """Follow it until cancelled, in a process that has no other periodic tasks."""
        runner = PeriodicRunner(TroubleLog(time.monotonic), clock=lambda: datetime.now(UTC), rng=random.Random())
        await runner.run([self.periodic()])

    def periodic(self) -> PeriodicTask:
        where = RunsIn.EVERY_PROCESS
        return PeriodicTask("verbose logs", VERBOSITY_SECONDS, self.run_once, where, within=self._following)

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
