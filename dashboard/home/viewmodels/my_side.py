"""The side of a person's home: slots in use, what was launched last and may be launched again, and projects; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.executions.viewmodels.launch import Slots, slots
from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import ACTIVE_STATES
from grid.runtime.executionrows import ExecutionRow


class Launch(NamedTuple):
    """One launch; the one with the newest `id` stands for all that are alike otherwise."""

    id: str
    title: str
    kind: str
    environment: str
    tier: str


@dataclass(frozen=True, slots=True)
class MyProject:
    name: str
    id: str
    role: str


@dataclass(frozen=True, slots=True)
class MySide:
    slots: Slots
    slots_percent: int
    launches: tuple[Launch, ...]
    projects: tuple[MyProject, ...]


def my_side(
    mine: Iterable[ExecutionRow], *, maximum: int, launches: Sequence[Launch], projects: Sequence[MyProject]
) -> Fragment:
    """Return the side's fragment. Slots are counted from the live executions, `mine`."""
    active = [row for row in mine if row.state in ACTIVE_STATES]
    used = sum(row.slots for row in active if row.state != "queued")
    queued = sum(row.slots for row in active if row.state == "queued")
    held = slots(used=used, queued=queued, maximum=maximum)
    side = MySide(held, percent(used, maximum), tuple(launches), tuple(projects))
    return Fragment("my-side", "home/fragments/my_side.html", side)
