"""A person's home: what runs, workspaces to resume, what needs its owner, what has ended, slots, latest launches and projects; pure."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from dashboard.executions.viewmodels.execution import CONTRIBUTING
from dashboard.executions.viewmodels.launch import Slots, slots
from dashboard.home.viewmodels.work_items import WorkItem, work_items
from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import ACTIVE_STATES, STATES, StatusLine, framework_name
from dashboard.workspaces.viewmodels.workspaces import MyExecution, WorkspaceRecord, fitting_button, workspace_card
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.runtime.executionrows import ExecutionRow

SHOWN = 8  # active ones
SHOWN_IN_SECTION = 4  # of each of the sections below
_NEEDS_FOR = timedelta(days=1)  # a workspace that failed earlier was left alone on purpose
_FAILED = frozenset({"failed", "error"})
_EXPLAINED = 8  # rows of a work item whose status is looked up, since that of an active one takes its pods

StatusOf = Callable[[ExecutionRow], tuple[StatusLine, str]]


@dataclass(frozen=True, slots=True)
class MyExecutions:
    """The cards in the order of the page, of which `more` may be left out. What ended without a workspace stays for the hour in which the
    runtime keeps it."""

    active: tuple[MyExecution, ...]
    stopped: tuple[MyExecution, ...]  # workspaces that may be resumed
    troubled: tuple[MyExecution, ...]  # what has failed, or cannot be resumed as it is
    ended: tuple[MyExecution, ...]
    more: bool
    has_workspaces: bool

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.stopped or self.troubled or self.ended)


def my_executions(
    mine: Collection[ExecutionRow], workspaces: Iterable[WorkspaceRecord], status_of: StatusOf, now: datetime
) -> Fragment:
    """Return the cards, each section newest first: those in `mine`, where several runs of a job are one card, and `workspaces` that are not
    active there. `status_of` is for shown ones."""
    workspaces = list(workspaces)
    busy = {row.workspace_id for row in mine if row.state in ACTIVE_STATES}
    items = [item for item in work_items(mine) if item.active or not item.newest.workspace_id]
    idle = [known for known in workspaces if known.id not in busy]
    active = [item for item in items if item.active]
    ended = [item for item in items if not item.active]
    stopped = [workspace_card(known) for known in idle if not needs_owner(known, now)]
    troubled = [(known.launched_at, workspace_card(known)) for known in idle if needs_owner(known, now)]
    troubled += [(item.newest.requested_at, _card(item, status_of)) for item in ended if item.has_failed]
    troubled.sort(key=lambda pair: pair[0], reverse=True)
    well = [item for item in ended if not item.has_failed]
    # Which are shown depends on what runs, but not their order: a card stays where it is when it starts.
    shown_active = sorted(active, key=lambda item: not item.runs)[:SHOWN]
    shown = MyExecutions(
        tuple(_card(item, status_of) for item in active if item in shown_active),
        tuple(stopped[:SHOWN_IN_SECTION]),
        tuple(card for _, card in troubled[:SHOWN_IN_SECTION]),
        tuple(_card(item, status_of) for item in well[:SHOWN_IN_SECTION]),
        more=len(active) > SHOWN or any(len(rest) > SHOWN_IN_SECTION for rest in (stopped, troubled, well)),
        has_workspaces=bool(workspaces) or any(busy),
    )
    return Fragment("my-executions", "home/fragments/my_executions.html", shown)


def needs_owner(workspace: WorkspaceRecord, now: datetime) -> bool:
    """Return whether a workspace that is not active has failed lately, or was not started again."""
    if workspace.is_restarting:
        return False
    if workspace.restart_problem or workspace.why_not_resume:
        return True
    latest = workspace.latest
    return latest is not None and latest.state in _FAILED and now - latest.since < _NEEDS_FOR


def _card(item: WorkItem, status_of: StatusOf) -> MyExecution:
    row, (status, advice) = _leading(item, status_of)
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
        job_id=row.job_id if item.is_group else "",
        runs=_runs_in_words(item) if item.is_group else "",
    )


def _leading(item: WorkItem, status_of: StatusOf) -> tuple[ExecutionRow, tuple[StatusLine, str]]:
    """Return the row that stands for all, with its status: the first with a problem, else the first that runs, else the newest."""
    rows = item.active or [row for row in item.rows if row.state in _FAILED] or item.rows
    known = [(row, status_of(row)) for row in sorted(rows, key=lambda row: row.state != "running")[:_EXPLAINED]]
    return next((pair for pair in known if pair[1][0].severity == "problem"), known[0])


def _runs_in_words(item: WorkItem) -> str:
    counts = Counter(row.state for row in item.rows)
    parts = [f"{counts[state]:,} {word.lower()}" for state, word in STATES.items() if counts[state]]
    return _("{runs}: {states}", runs=plural(len(item.rows), "run", "runs"), states=", ".join(parts))


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
