"""A person's home: running and stopped executions, where a workspace is listed once, slots, latest launches and projects; pure."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.executions.viewmodels.execution import CONTRIBUTING
from dashboard.executions.viewmodels.launch import Slots, slots
from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import ACTIVE_STATES, StatusLine, framework_name
from dashboard.workspaces.viewmodels.workspaces import MyExecution, WorkspaceRecord, fitting_button, workspace_card
from grid.core.translation import gettext as _
from grid.runtime.executionrows import ExecutionRow

SHOWN = 8


@dataclass(frozen=True, slots=True)
class MyExecutions:
    """The cards, of which `more` may be left out. What ended without a workspace stays for the hour in which the runtime keeps it."""

    active: tuple[MyExecution, ...]
    ended: tuple[MyExecution, ...]
    more: bool
    has_workspaces: bool


def my_executions(
    mine: Collection[ExecutionRow],
    workspaces: Iterable[WorkspaceRecord],
    status_of: Callable[[ExecutionRow], tuple[StatusLine, str]],
) -> Fragment:
    """Return the cards, each newest first: those in `mine`, and `workspaces` that are not active there. `status_of` is for shown ones."""
    workspaces = list(workspaces)
    active = sorted((row for row in mine if row.state in ACTIVE_STATES), key=lambda row: row.requested_at, reverse=True)
    busy = {row.workspace_id for row in active}
    ended = [
        (row.requested_at, _row_card(row, status_of))
        for row in mine
        if row.state not in ACTIVE_STATES and not row.workspace_id
    ]
    ended += [(known.launched_at, workspace_card(known)) for known in workspaces if known.id not in busy]
    ended.sort(key=lambda pair: pair[0], reverse=True)
    shown = MyExecutions(
        tuple(_row_card(row, status_of) for row in active[:SHOWN]),
        tuple(card for _, card in ended[: max(0, SHOWN - len(active))]),
        more=len(active) + len(ended) > SHOWN,
        has_workspaces=bool(workspaces) or any(busy),
    )
    return Fragment("my-executions", "home/fragments/my_executions.html", shown)


def _row_card(row: ExecutionRow, status_of: Callable[[ExecutionRow], tuple[StatusLine, str]]) -> MyExecution:
    status, advice = status_of(row)
    contributes = row.project_roles.get(row.owner_id) in CONTRIBUTING
    cluster = _("{framework} cluster", framework=framework_name(row.framework))
    return MyExecution(
        execution_id=row.id,
        workspace_id=row.workspace_id,
        name=row.title or row.object_name,
        environment=cluster if row.framework else row.environment_name,
        tier=row.tier_name,
        project=row.project_name,
        status=status,
        advice=advice,
        since=row.state_since,
        button=fitting_button(row.state, contributes=contributes) if row.workspace_id else "",
        is_active=row.state in ACTIVE_STATES,
    )


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
