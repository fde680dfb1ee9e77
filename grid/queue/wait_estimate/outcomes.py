"""Stores what was expected of each wait, once at each stage: queued, admitted, waiting for room on nodes, preparing on a node; and what
came of it. The controller calls it every few seconds; doing it twice changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from grid.core.translation import gettext as _
from grid.models import Execution, State, WaitPrediction
from grid.queue.wait_estimate.estimate import estimates
from grid.queue.wait_estimate.observing import Observed
from grid.queue.wait_estimate.reading import read_facts

FEWEST_OUTCOMES = 10
NEAR, NEAR_SECONDS = 0.3, 10.0
KEPT = timedelta(days=30)
LATELY = 100  # outcomes of a stage
_LATEST = 4 * LATELY  # outcomes of all stages, in one look along the index
_AT_ONCE = 500
_SCHEDULED = timedelta(seconds=15)  # after this the scheduler has said something, or is not to be waited for
_STAGES = {
    State.QUEUED: WaitPrediction.Stage.QUEUED,
    State.DEPLOYING: WaitPrediction.Stage.ADMITTED,
    State.PREPARING: WaitPrediction.Stage.PREPARING,
}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How many of the latest predictions were near what happened. `sentence` is "" below `FEWEST_OUTCOMES`."""

    near: int = 0
    all: int = 0

    @property
    def sentence(self) -> str:
        if self.all < FEWEST_OUTCOMES:
            return ""
        sentence = _("{near} of the last {all} expected waits were within 30 % or 10 seconds of what happened.")
        return sentence.format(near=self.near, all=self.all)


def is_near(expected: float, actual: float) -> bool:
    """Return whether a prediction was right enough: 30 % off at most, or 10 seconds."""
    return abs(expected - actual) <= max(NEAR * actual, NEAR_SECONDS)


def accuracy_of(outcomes: Iterable[tuple[float | None, float | None]]) -> Accuracy:
    pairs = [(expected, actual) for expected, actual in outcomes if expected is not None and actual is not None]
    return Accuracy(sum(is_near(expected, actual) for expected, actual in pairs), len(pairs))


def read_accuracy() -> dict[str, Accuracy]:
    """Return by stage how right the latest predictions were; those of a short wait are much more often right than those of a long one."""
    predictions = WaitPrediction.objects.filter(ran_at__isnull=False, expected__isnull=False).order_by("-ran_at")
    by_stage: dict[str, list[tuple[float | None, float | None]]] = {}
    for stage, expected, actual in predictions.values_list("stage", "expected", "actual")[:_LATEST]:
        by_stage.setdefault(stage, []).append((expected, actual))
    return {stage: accuracy_of(pairs[:LATELY]) for stage, pairs in by_stage.items()}


def crowded_out(observed: Observed) -> frozenset[str]:
    """Return the ids of those that wait until others on the nodes end."""
    return frozenset([seeker.execution for seeker in observed.room.seekers if seeker.part])


def stage_of(state: str, *, is_crowded_out: bool) -> WaitPrediction.Stage:
    """Return the stage at which an execution that is queued or starts is."""
    return WaitPrediction.Stage.ROOM if is_crowded_out else _STAGES[State(state)]


def start_waits(data_plane: str) -> QuerySet[Execution]:
    """Return the executions that wait for their start."""
    return Execution.objects.in_data_plane(data_plane).unsettled().filter(state__in=list(_STAGES)).order_by()


def keep_predictions(data_plane: str, observed: Observed, *, now: datetime) -> int:
    """Store what is expected of those of whom nothing is stored yet, and what came of the others; return how many were predicted. What is
    measured is what pages tell, so those that have slots wait until they are `observed`, but not long."""
    _fill_in(data_plane)
    rows = start_waits(data_plane)
    crowded = crowded_out(observed)
    seen = {*observed.new_nodes, *observed.on_node, *crowded}
    stages = {
        (id, stage_of(state, is_crowded_out=id in crowded))
        for id, state, since in rows.values_list("pk", "state", "state_since")
        if state == State.QUEUED or id in seen or now - since > _SCHEDULED
    }
    if not stages:
        return 0
    known = WaitPrediction.objects.filter(execution__in=rows).values_list("execution_id", "stage")
    wanted = stages - {(id, WaitPrediction.Stage(stage)) for id, stage in known}
    if not wanted:
        return 0
    expected = estimates(read_facts(data_plane, now, observed=observed))
    made = []
    for id, stage in sorted(wanted):
        if (wait := expected.get(id)) is not None:
            low, high = wait.low, wait.high
            made.append(
                WaitPrediction(execution_id=id, stage=stage, made_at=now, expected=wait.expected, low=low, high=high)
            )
    WaitPrediction.objects.bulk_create(made, ignore_conflicts=True)
    return len(made)


def drop_predictions(now: datetime, at_most: int) -> int:
    old = WaitPrediction.objects.filter(made_at__lt=now - KEPT).order_by("made_at")
    keys = list(old.values_list("pk", flat=True)[:at_most])
    WaitPrediction.objects.filter(pk__in=keys).delete()
    return len(keys)


def _fill_in(data_plane: str) -> None:
    open_ones = WaitPrediction.objects.filter(ran_at__isnull=True, execution__data_plane=data_plane)
    open_ones.filter(execution__started_at__isnull=True, execution__settled_at__isnull=False).delete()
    ran = open_ones.filter(execution__started_at__isnull=False).select_related("execution")[:_AT_ONCE]
    done = []
    for prediction in ran:
        prediction.ran_at = prediction.execution.started_at
        assert prediction.ran_at is not None
        prediction.actual = max(0.0, (prediction.ran_at - prediction.made_at).total_seconds())
        done.append(prediction)
    if done:
        WaitPrediction.objects.bulk_update(done, ["ran_at", "actual"])
