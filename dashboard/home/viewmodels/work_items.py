"""What stands as one card on a person's home: an execution, or all runs of one job; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.shell.viewmodels.states import ACTIVE_STATES
from grid.runtime.executionrows import ExecutionRow


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One execution, or the latest attempt of each of several runs of a job; newest first."""

    rows: tuple[ExecutionRow, ...]

    @property
    def newest(self) -> ExecutionRow:
        return self.rows[0]

    @property
    def is_group(self) -> bool:
        return len(self.rows) > 1

    @property
    def active(self) -> Sequence[ExecutionRow]:
        return [row for row in self.rows if row.state in ACTIVE_STATES]

    @property
    def runs(self) -> bool:
        return any(row.state == "running" for row in self.rows)

    @property
    def has_failed(self) -> bool:
        return any(row.state in ("failed", "error") for row in self.rows)


def work_items(rows: Iterable[ExecutionRow]) -> list[WorkItem]:
    """Return the items, newest first. A run is its latest attempt, and a cluster of one of several runs goes with its run."""
    runs: dict[str, dict[int, ExecutionRow]] = {}  # by job and number
    alone, attached = [], []
    for row in sorted(rows, key=lambda row: (row.requested_at, row.id), reverse=True):
        if row.job_id:
            runs.setdefault(row.job_id, {}).setdefault(row.run_number, row)
        elif row.attached_to:
            attached.append(row)
        else:
            alone.append(row)
    in_groups = {row.id for of_job in runs.values() if len(of_job) > 1 for row in of_job.values()}
    alone += [row for row in attached if row.attached_to not in in_groups]
    items = [WorkItem((row,)) for row in alone] + [WorkItem(tuple(of_job.values())) for of_job in runs.values()]
    return sorted(items, key=lambda item: item.newest.requested_at, reverse=True)
