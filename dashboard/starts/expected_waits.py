"""How long everything is expected to wait, read once for all pages of a process, in a thread and at most every few seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from threading import Lock

from django.utils import timezone

from dashboard.shell.pages.periodic import FIRST_SECONDS, PeriodicRead
from dashboard.starts.viewmodels.expected_wait import STANDS_STILL, WaitLine, wait_line, wait_note
from grid.core.reasons import ANYBODY, Reader
from grid.database import threads as database
from grid.models import DataPlane, Execution, WaitPrediction
from grid.queue.snapshot import Queue, peek
from grid.queue.takeover import current_takeover, takeover_sentence
from grid.queue.wait_estimate.estimate import estimate_of, estimates
from grid.queue.wait_estimate.inputs import WaitEstimate, WaitFacts
from grid.queue.wait_estimate.observing import Observed
from grid.queue.wait_estimate.outcomes import Accuracy, crowded_out, read_accuracy, stage_of
from grid.queue.wait_estimate.reading import read_facts, with_launch
from grid.runtime import Runtime
from grid.runtime.executionrows import ExecutionRow
from grid.runtime.starts import STARTING, observed_starts


@dataclass(frozen=True, slots=True)
class WaitsRead:
    """What is expected, by the execution's id, in seconds from `at`; how right that was lately, by stage; and who waits for room."""

    at: datetime
    estimates: Mapping[str, WaitEstimate] = field(default_factory=dict)
    accuracy: Mapping[str, Accuracy] = field(default_factory=dict)
    crowded_out: frozenset[str] = frozenset()
    takeover: str = ""  # who has taken over the queue, until when and why

    def how_right(self, execution_id: str, state: str) -> str:
        """Return how right expected waits like this one's were lately, in a sentence; "" when too few are known."""
        stage = stage_of(state, is_crowded_out=execution_id in self.crowded_out)
        return self.accuracy.get(stage, Accuracy()).sentence


def read_expectations(now: datetime, observed: Observed) -> WaitsRead:
    """Return what is expected now; `observed` is what the cluster shows of those that start."""
    expected: dict[str, WaitEstimate] = {}
    for data_plane in DataPlane.objects.values_list("pk", flat=True):
        starting = Execution.objects.in_data_plane(data_plane).unsettled().filter(state__in=STARTING)
        if starting.exists():  # else all that runs, and much of the history, would be read for nothing
            expected |= estimates(read_facts(data_plane, now, observed=observed))
    takeover = current_takeover(now)
    sentence = takeover_sentence(takeover) if takeover is not None else ""
    return WaitsRead(now, expected, read_accuracy(), crowded_out(observed), sentence)


def how_right(stage: WaitPrediction.Stage) -> str:
    """Return how right expected waits of this stage were lately, for what is not launched yet."""
    return read_accuracy().get(stage, Accuracy()).sentence


SECONDS = 5.0


@lru_cache(maxsize=4)
def _facts(data_plane: str, runtime: object, period: float) -> WaitFacts:
    """Return what the launches that are only asked about within one period have in common: it is of all active executions and much of the
    history."""
    return read_facts(data_plane, timezone.now())


_ONE_READS = Lock()


def expected_wait(
    launch: list[Execution],
    now: datetime,
    runtime: Runtime,
    *,
    queue: Queue | None = None,
    observed: Observed | None = None,
) -> WaitEstimate | None:
    """Return what a launch, with its cluster if any, has to expect; the `queue` with it is read if it is not given, and `observed` may
    show its pods as the last that wait for room."""
    first = launch[0]
    queue = queue or peek(first.data_plane_id, launch, now=now)
    with _ONE_READS:
        known = _facts(first.data_plane_id, runtime.executions, runtime.monotonic() // SECONDS)
    return estimate_of(with_launch(known, launch, queue.snapshot, now, observed), first.pk)


def stands_still(runtime: Runtime) -> bool:
    """Return whether nothing starts because no controller is running, however long it waits."""
    return runtime.controller_away() is not None


class ExpectedWaits:
    """The value that pages of one runtime share; None until it was computed once, and while the database does not answer."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        self._read: PeriodicRead[WaitsRead] | None = None
        self.latest: WaitsRead | None = None

    async def value(self, runtime: Runtime, *, patience: float = FIRST_SECONDS) -> WaitsRead | None:
        self.latest = await self._read_in(runtime).value(SECONDS, patience=patience)
        return self.latest

    def begin(self, runtime: Runtime) -> None:
        """Have it computed again when it is old, and wait for nothing: for pages that can do without."""
        self.latest = self._read_in(runtime).begin(SECONDS)

    def line(
        self, execution_id: str, state: str, now: datetime, reader: Reader = ANYBODY, *, stands_still: bool = False
    ) -> WaitLine | None:
        """Return what was expected of an execution when `value` was last asked; None when not computed, and of one that is not starting."""
        if self.latest is None or execution_id not in self.latest.estimates or state not in STARTING:
            return None
        if stands_still:
            return STANDS_STILL
        estimate, passed = self.latest.estimates[execution_id], (now - self.latest.at).total_seconds()
        return wait_line(estimate, passed, self.latest.how_right(execution_id, state), reader=reader)

    def note(self, row: ExecutionRow | None, runtime: Runtime) -> str:
        """Return what was expected of an execution in a few words that change seldom; "" when nothing is known or no controller runs."""
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
