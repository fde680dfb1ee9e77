"""Reads from the database how long everything that waits or starts is expected to take; synchronous, and never once for each page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from grid.launch.expectation.accuracy import Accuracy
from grid.launch.expectation.basis import WaitEstimate
from grid.launch.expectation.estimate import estimates
from grid.launch.expectation.observed import Observed
from grid.launch.expectation.outcomes import read_accuracy
from grid.launch.expectation.reading import read_facts
from grid.models import DataPlane, Execution


@dataclass(frozen=True, slots=True)
class WaitsRead:
    """What is expected, by the execution's id, in seconds from `at`."""

    at: datetime
    estimates: Mapping[str, WaitEstimate] = field(default_factory=dict)
    accuracy: Accuracy = field(default_factory=Accuracy)


def read_expectations(now: datetime, observed: Observed) -> WaitsRead:
    """Return what is expected now; `observed` is what the cluster shows of those that start."""
    found: dict[str, WaitEstimate] = {}
    for data_plane in DataPlane.objects.values_list("pk", flat=True):
        found |= estimates(read_facts(data_plane, now, observed=observed))
    return WaitsRead(now, found, read_accuracy())


def expected_wait(launch: list[Execution], now: datetime, observed: Observed | None = None) -> WaitEstimate | None:
    """Return what a launch has to expect that is not stored: one execution, or a workspace or job and its cluster. `observed` may show
    its pods as the last that wait for room."""
    first = launch[0]
    return estimates(read_facts(first.data_plane_id, now, launch, observed=observed)).get(first.pk)
