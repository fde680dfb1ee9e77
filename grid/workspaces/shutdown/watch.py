"""Looks each minute at what limits hold for, and announces and makes stops; a task of its own, so that no round waits for it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.workspaces.shutdown.records import WatchedRun, carry_out, store_looks, watched
from grid.workspaces.shutdown.rules import LOOK, LookOutcome, Stop, decide

logger = logging.getLogger(__name__)


class Observer(Protocol):
    """Finds out whether executions are in use."""

    async def observe(self, runs: Sequence[WatchedRun], now: datetime) -> Mapping[str, LookOutcome]:
        """Return by id what is seen of those that may be stopped when idle. It takes seconds at most, whatever their programs do."""
        ...


class ShutdownWatch:
    """Announces and makes the stops of a data plane during one term of leadership."""

    def __init__(self, data_plane: str, database: Database, clock: Callable[[], datetime], observer: Observer) -> None:
        self._data_plane = data_plane
        self._database = database
        self._clock = clock
        self._observer = observer

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("idle shutdown", LOOK.total_seconds(), self.run_once)

    async def run_once(self) -> None:
        """Look once at all that a limit holds for, and do what is due."""
        runs = await self._database(watched, self._data_plane)
        if not runs:
            return
        asked = [run for run in runs if run.limits.idle is not None]
        outcomes = await self._observer.observe(asked, self._clock()) if asked else {}
        now = self._clock()
        if outcomes:
            seen = {run.id: run for run in await self._database(store_looks, outcomes, asked, now)}
            runs = [seen.get(run.id, run) for run in runs]
        for run in runs:  # each in a turn of its own, so that other work with the database goes between
            decision = decide(run.life, run.limits, now)
            if decision is None:
                continue
            is_written = await self._database(carry_out, run, decision, now)
            if is_written and isinstance(decision, Stop):
                logger.info("execution=%s ends reason=%s", run.id, decision.stop.cause)
