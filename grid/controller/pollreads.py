"""What the controller's poll reads and writes in one turn of its database thread; on PostgreSQL, each turn pings the connection."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grid.clusters import attached
from grid.database.periodic import which_exist
from grid.executions import ledger
from grid.jobs import jobruns
from grid.logs import knowledge
from grid.models import Execution, State
from grid.queue import admission
from grid.workspaces import workspaces


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """What became of the executions that were written: the clusters that were told to end with their parents, and the revisions of those
    that are open. `jobs` are those with a run to move on, `may_change_queue` says whether admission may decide otherwise than before."""

    stopped: Sequence[str]
    versions: Mapping[str, int]
    jobs: Mapping[str, int]
    may_change_queue: bool


def read_written(data_plane: str, ids: Collection[str], *, now: datetime) -> WrittenRows:
    """Tell clusters whose parents have ended to end, and read what became of the executions with these ids."""
    return WrittenRows(
        stopped=attached.stop_with_parents(data_plane, now=now),
        versions=ledger.row_versions(data_plane, ids),
        jobs=jobruns.jobs_told(ids),
        may_change_queue=ledger.may_change_queue(ids),
    )


def admit(data_plane: str, *, now: datetime) -> admission.Admission:
    """Queue again the workspaces that restart and have stopped, and admit."""
    workspaces.resume_restarted(now=now)
    return admission.admit_next(data_plane, now=now)


def is_anything_due(data_plane: str, limits: Mapping[State, int], *, now: datetime) -> bool:
    """Return whether time has something to decide, or somebody is in the queue; in one statement, as nearly each time nothing has."""
    due = (
        Execution.objects.in_data_plane(data_plane).queued(),
        ledger.too_long(data_plane, limits, now),
        jobruns.runs_due(now),
        workspaces.to_resume(),
    )
    return any(which_exist(due))


def overdue(data_plane: str, *, now: datetime) -> tuple[Mapping[State, int], Sequence[str]]:
    """Read the knowledge base again, and return `ledger.overdue`."""
    knowledge.refresh()
    return ledger.overdue(data_plane, now=now)
