"""Moves on the runs of jobs, in turn by their owners, beside the controller's poll, which finds the jobs.

What is found is kept in memory only, and moving a job on twice changes nothing: what is lost with a process is found again.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping

from grid.core.backoff import Backoff
from grid.database.trouble import TroubleLog
from grid.database.turns import PersonTurns
from grid.executions.context import Context
from grid.jobs import jobruns
from grid.jobs.lateness import seconds_late
from grid.observability import telemetry

logger = logging.getLogger(__name__)

AT_ONCE = 20  # jobs between two looks at who has something due
OF_EACH = 5  # jobs of one person in a look


class RunMover:
    """Moves on what it is told of; `launched` is told which executions that launches."""

    def __init__(
        self, context: Context, troubles: TroubleLog, rng: random.Random, launched: Callable[[str], object]
    ) -> None:
        self._context = context
        self._troubles = troubles
        self._rng = rng
        self._launched = launched
        self._jobs: dict[int, dict[str, None]] = {}  # by owner, in the order in which they were found
        self._turns = PersonTurns[int]()
        self._has_jobs = asyncio.Event()

    def add(self, jobs: Mapping[str, int]) -> None:
        """Have these jobs moved on, given with their owners."""
        for job, owner in jobs.items():
            self._jobs.setdefault(owner, {})[job] = None
        if self._jobs:
            self._has_jobs.set()

    async def run(self) -> None:
        """Move on what is added, for ever; what fails for want of the database is tried again."""
        backoff = Backoff(rng=self._rng)
        while True:
            await self._has_jobs.wait()
            try:
                await self.move_some()
                backoff.reset()
            except Exception as error:
                if not self._troubles.handles(error):
                    logger.exception("runs of jobs not moved on")
                await asyncio.sleep(backoff.next())

    async def move_all(self) -> bool:
        """Move on all that is known of; return whether there was anything."""
        was_any = bool(self._jobs)
        while self._jobs:
            await self.move_some()
        return was_any

    async def move_some(self) -> None:
        """Move on the first jobs of each owner, in turn."""
        context = self._context
        due = [(owner, (owner, job)) for owner, jobs in self._jobs.items() for job in list(jobs)[:OF_EACH]]
        oldest = await context.due_work(jobruns.longest_due, context.clock())
        late = seconds_late([oldest] if oldest else [], context.clock())
        telemetry.DUE_WORK_LATE.labels("runs").set(late)
        await self._turns.serve(due, self._move, at_most=AT_ONCE)
        if not self._jobs:
            self._has_jobs.clear()

    async def _move(self, which: tuple[int, str]) -> None:
        owner, job = which
        context = self._context
        done = await context.due_work(jobruns.advance_or_log, job, now=context.clock())
        jobs = self._jobs[owner]
        jobs.pop(job, None)
        if not jobs:
            del self._jobs[owner]
        for id in done.launched:
            logger.info("execution=%s launched as an attempt of a run", id)
            self._launched(id)
        if done.is_more:
            self.add({job: owner})
        if done.followers:
            self.add(await context.due_work(jobruns.owners_of, done.followers))
