"""What the pages of a project show: its tabs, what of it runs now, its latest runs, and what it has spent; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from dashboard.jobs.viewmodels.job_rows import run_status
from dashboard.jobs.viewmodels.jobs import ProjectRun, SweepLine
from dashboard.shell.viewmodels.states import StatusLine, kind_name, state_status
from grid.core.reasons import Reader
from grid.core.translation import gettext as _
from grid.core.wording import money
from grid.models import Execution

# By the name of its URL: the title of each tab of a project, in their order.
TABS = {
    "project": _("Overview"),
    "project-files": _("Files"),
    "project-member": _("Members"),
    "project-settings": _("Settings"),
}


@dataclass(frozen=True, slots=True)
class RunningExecution:
    """An active execution of a project, in words for any member."""

    id: str
    name: str
    kind: str
    status: StatusLine
    username: str
    tier: str
    since: datetime


@dataclass(frozen=True, slots=True)
class ProjectRunRow:
    """A run or a sweep; `sweep` is "" for a run, and `execution_id` is "" for a sweep and for a run that was not launched yet."""

    job_id: str
    job_name: str
    username: str
    run: str
    requested_at: datetime
    status: StatusLine
    execution_id: str = ""
    sweep: str = ""
    took: str = ""


def tabs_for(*, may_browse: bool, may_manage: bool) -> Mapping[str, str]:
    """Return the tabs that a person has: files are for those who contribute to files in Git, settings for those who may change them."""
    hidden = {"project-files": not may_browse, "project-settings": not may_manage}
    return {name: title for name, title in TABS.items() if not hidden.get(name)}


def running_execution(row: Execution, *, reader_id: int) -> RunningExecution:
    words = row.words(Reader(row.owner.get_username(), is_owner=row.owner_id == reader_id))
    return RunningExecution(
        id=row.pk,
        name=str(row),
        kind=kind_name(row.kind),
        status=state_status(row.state, message=words)[0],
        username=row.owner.get_username(),
        tier=row.tier.name,
        since=row.state_since,
    )


def running_executions(rows: Iterable[Execution], *, reader_id: int) -> Sequence[RunningExecution]:
    return [running_execution(row, reader_id=reader_id) for row in rows]


def run_rows(runs: Iterable[ProjectRun], now: datetime) -> Sequence[ProjectRunRow]:
    return [_run_row(run, now) for run in runs]


def _run_row(run: ProjectRun, now: datetime) -> ProjectRunRow:
    row, line = partial(ProjectRunRow, run.job_id, run.job_name, run.owner_username), run.line
    if isinstance(line, SweepLine):
        return row(_("Sweep, {runs}", runs=line.runs), line.requested_at, line.status, sweep=line.id)
    words = _("Run {number}", number=line.number)
    return row(words, line.requested_at, run_status(line, now), execution_id=line.execution_id, took=line.took)


def spent_words(costs: Mapping[date, Decimal]) -> str:
    """Return what a project without a budget has spent this month; `costs` are by day."""
    return _("{amount} this month", amount=money(sum(costs.values(), Decimal(0))))
