"""Reads from the database how long everything that waits or starts is expected to take; synchronous, and never once for each page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from grid.models import DataPlane, Execution, WaitPrediction
from grid.queue.takeover import current_takeover, takeover_sentence
from grid.queue.wait_estimate.accuracy import Accuracy
from grid.queue.wait_estimate.estimate import estimates
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.queue.wait_estimate.observed import Observed
from grid.queue.wait_estimate.outcomes import crowded_out, read_accuracy, stage_of
from grid.queue.wait_estimate.reading import read_facts


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
        return _sentence(self.accuracy, stage_of(state, is_crowded_out=execution_id in self.crowded_out))


def read_expectations(now: datetime, observed: Observed) -> WaitsRead:
    """Return what is expected now; `observed` is what the cluster shows of those that start."""
    expected: dict[str, WaitEstimate] = {}
    for data_plane in DataPlane.objects.values_list("pk", flat=True):
        expected |= estimates(read_facts(data_plane, now, observed=observed))
    return WaitsRead(now, expected, read_accuracy(), crowded_out(observed), read_takeover(now))


def read_takeover(now: datetime) -> str:
    """Return who has taken over the queue, until when and why; "" when it goes by turn."""
    takeover = current_takeover(now)
    return takeover_sentence(takeover) if takeover is not None else ""


def how_right(stage: WaitPrediction.Stage) -> str:
    """Return how right expected waits of this stage were lately, for what is not launched yet."""
    return _sentence(read_accuracy(), stage)


def _sentence(accuracy: Mapping[str, Accuracy], stage: WaitPrediction.Stage) -> str:
    return accuracy.get(stage, Accuracy()).sentence


def expected_wait(launch: list[Execution], now: datetime, observed: Observed | None = None) -> WaitEstimate | None:
    """Return what a launch has to expect that is not stored: one execution, or a workspace or job and its cluster. `observed` may show
    its pods as the last that wait for room."""
    first = launch[0]
    return estimates(read_facts(first.data_plane_id, now, launch, observed=observed)).get(first.pk)
