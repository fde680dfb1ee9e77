"""A person's own executions at a glance, for the first page after login; pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from dashboard.viewmodels.clusters import framework_name
from dashboard.viewmodels.live import Fragment
from dashboard.viewmodels.nodes import Status
from dashboard.viewmodels.states import state_status
from grid.runtime.executions import ExecutionRow

SHOWN = 8
_FINAL = frozenset({"succeeded", "stopped", "failed", "error"})


@dataclass(frozen=True, slots=True)
class MyExecution:
    """`environment` is what it runs: of a cluster, the framework."""

    id: str
    name: str
    environment: str
    tier: str
    project: str
    status: Status
    since: datetime


@dataclass(frozen=True, slots=True)
class MyExecutions:
    """`more` counts those that are not shown; what ended stays for the hour that the runtime keeps it."""

    lines: tuple[MyExecution, ...]
    more: int


def my_executions(rows: Iterable[ExecutionRow]) -> Fragment:
    """What runs or waits first, the newest first."""
    mine = sorted(rows, key=lambda row: row.requested_at, reverse=True)
    mine.sort(key=lambda row: row.state in _FINAL)
    lines = tuple(_line(row) for row in mine[:SHOWN])
    shown = MyExecutions(lines, max(0, len(mine) - SHOWN))
    return Fragment("my-executions", "dashboard/fragments/my_executions.html", shown)


def _line(row: ExecutionRow) -> MyExecution:
    return MyExecution(
        id=row.id,
        name=row.title or row.object_name,
        environment=row.environment_name if not row.framework else f"{framework_name(row.framework)} cluster",
        tier=row.tier_name,
        project=row.project_name,
        status=state_status(row.state, message=row.message)[0],
        since=row.state_since,
    )
