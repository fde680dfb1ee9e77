"""Reads the tasks of nodes from the database, for all nodes' pages at once."""

from collections.abc import Mapping
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from dashboard.nodes.viewmodels.node_tasks import TaskLine
from grid.models import NodeTask
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
