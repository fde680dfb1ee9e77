"""How long everything is expected to wait, computed once for all pages of a process, in a thread and at most every few seconds."""

from datetime import datetime
from functools import partial

from dashboard.shell.pages.periodic import PeriodicRead
from dashboard.starts.viewmodels.expected_wait import STANDS_STILL, WaitLine, wait_line, wait_note
from dashboard.starts.wait_records import WaitsRead, read_expectations
from grid.core.reasons import ANYBODY, Reader
from grid.database import threads as database
from grid.runtime import Runtime
from grid.runtime.executionrows import ExecutionRow
from grid.runtime.starts import STARTING, observed_starts

SECONDS = 5.0


def stands_still(runtime: Runtime) -> bool:
    """Return whether nothing starts because no controller is running, however long it waits."""
    return runtime.controller_away() is not None


class ExpectedWaits:
    """The value that pages of one runtime share; None until it was computed once, and while the database does not answer."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        self._read: PeriodicRead[WaitsRead] | None = None
        self.latest: WaitsRead | None = None

    async def value(self, runtime: Runtime) -> WaitsRead | None:
        self.latest = await self._read_in(runtime).value(SECONDS)
        return self.latest

    def begin(self, runtime: Runtime) -> None:
        """Have it computed again when it is old, and wait for nothing: for pages that can do without."""
        self.latest = self._read_in(runtime).begin(SECONDS)

    def line(
        self, execution_id: str, state: str, now: datetime, reader: Reader = ANYBODY, *, stands_still: bool = False
    ) -> WaitLine | None:
        """Return what was expected of an execution when `value` was last asked; None when it was not computed, and of one that neither
        waits nor starts. `stands_still` while no controller is running: then no time is expected."""
        if self.latest is None or execution_id not in self.latest.estimates or state not in STARTING:
            return None
        if stands_still:
            return STANDS_STILL
        estimate, passed = self.latest.estimates[execution_id], (now - self.latest.at).total_seconds()
        return wait_line(estimate, passed, self.latest.how_right(execution_id, state), reader=reader)

    def note(self, row: ExecutionRow | None, runtime: Runtime) -> str:
        """Return what was expected of an execution in a few words that change seldom; "" of one that is not starting, when nothing is
        known, and while no controller is running, which the page says."""
        if self.latest is None or row is None or row.state not in STARTING or stands_still(runtime):
            return ""
        estimate = self.latest.estimates.get(row.id)
        return "" if estimate is None else wait_note(estimate)

    def _read_in(self, runtime: Runtime) -> PeriodicRead[WaitsRead]:
        if self._read is None or self._runtime is not runtime:
            self._runtime, self.latest = runtime, None
            self._read = PeriodicRead(partial(self._computed, runtime), clock=runtime.clock)
        return self._read

    async def _computed(self, runtime: Runtime) -> WaitsRead:
        return await database.pages.run(read_expectations, runtime.clock(), await observed_starts(runtime))


EXPECTED = ExpectedWaits()
