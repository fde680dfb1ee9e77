"""Reads from the database what was done with nodes, for all nodes' pages at once, and what failed on one, whose pods may be gone."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from dashboard.nodes.viewmodels.node_tasks import TaskLine
from dashboard.usage.viewmodels.failure_moments import SHOWN_AT_MOST, FailedExecution
from grid.models import Execution, NodeTask, State
from grid.models.dataplane import LOCAL
from grid.nodes import nodetasks
from grid.nodes.draining import parse_progress

SHOWN_FOR = timedelta(hours=1)
_MOST = 500


def read_task_lines() -> Mapping[str, TaskLine]:
    """Return each node's newest task by the node's name: those that are open, and those that ended within the last hour."""
    recent = NodeTask.objects.filter(Q(ended_at=None) | Q(ended_at__gt=timezone.now() - SHOWN_FOR))
    newest = reversed(recent.order_by("-pk")[:_MOST])
    return {task.node_name: task_line(task) for task in newest}


def task_line(task: NodeTask) -> TaskLine:
    return TaskLine(
        action=task.action,
        by=task.actor_name,
        asked_at=task.asked_at,
        reason=task.reason,
        mark=str(nodetasks.mark_of(task) or ""),
        trouble=task.trouble,
        ended_at=task.ended_at,
        outcome=task.outcome,
        progress=parse_progress((task.progress or {}).get("pods") or {}),
    )


def failed_on(node_name: str, since: datetime) -> list[FailedExecution]:
    """Return the executions that failed on the node since then, the newest first, at most as many as are shown. The index of the history
    by end bounds what is read to those that ended since."""
    rows = Execution.objects.filter(
        ended_at__gte=since, state__in=(State.FAILED, State.ERROR), node_name=node_name, data_plane=LOCAL
    ).order_by("-ended_at", "-id")
    read = rows.only("kind", "title", "ended_at", "message")[:SHOWN_AT_MOST]
    return [FailedExecution(row.pk, str(row), row.ended_at, row.message) for row in read if row.ended_at is not None]
