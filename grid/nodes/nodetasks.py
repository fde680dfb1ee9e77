"""Asks of a node what operators want of it, and records it: cordon, uncordon, drain, taints and labels.

A request is a row, which the leading controller carries out (`nodekeeper.py`), so that the web process needs no right to change nodes,
and a request outlives whoever took it. Who cordoned a node, when and why is written on the node itself, where `kubectl` shows it too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from grid.audit.entries import write_entry
from grid.core.errors import rejection
from grid.core.labels import CORDON_REASON, CORDONED_AT, CORDONED_BY
from grid.core.translation import gettext as _
from grid.core.wording import one_line
from grid.kube.objects import Node, RawObject
from grid.models import NodeTask, User
from grid.models.platform import REASON_LONGEST
from grid.nodes.nodemarks import Mark, fingerprint, refusal

Action = NodeTask.Action
KEPT_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cordon:
    """Who cordoned a node with Compute Grid; all empty when somebody did it by other means."""

    by: str = ""
    at: str = ""
    reason: str = ""


def cordon_of(node: Node) -> Cordon | None:
    """Return who keeps new pods off the node; None when nobody does. Notes that are left on a node that is open say nothing."""
    notes = node.metadata.annotations
    if not node.spec.unschedulable:
        return None
    return Cordon(notes.get(CORDONED_BY, ""), notes.get(CORDONED_AT, ""), notes.get(CORDON_REASON, ""))


def patch_for(action: str, *, by: str, at: datetime, reason: str) -> RawObject:
    """Return the merge patch that cordons a node, with who and why, or uncordons it."""
    notes: dict[str, str | None] = dict.fromkeys((CORDONED_BY, CORDONED_AT, CORDON_REASON))
    closes = action != Action.UNCORDON
    if closes:
        notes = {CORDONED_BY: by, CORDONED_AT: at.isoformat(timespec="seconds"), CORDON_REASON: reason or None}
    return {"metadata": {"annotations": notes}, "spec": {"unschedulable": True if closes else None}}


def ask(node: Node, action: str, *, by: User, reason: str, now: datetime) -> NodeTask:
    """Record what the user wants of the node, with its audit entry. Raise Rejected when a reason is missing or too long, when it changes
    nothing, and while another task of the node is open."""
    if action not in (Action.CORDON, Action.UNCORDON, Action.DRAIN):
        raise rejection(_("Choose what to do with the node."), path="action")
    reason = _checked_reason(reason, is_needed=action != Action.UNCORDON)
    if action == Action.CORDON and node.spec.unschedulable:
        raise rejection(_("The node is cordoned already."), path="action")
    if action == Action.UNCORDON and not node.spec.unschedulable and not is_draining(node.metadata.name):
        raise rejection(_("The node is not cordoned already."), path="action")
    task = NodeTask(action=action, reason=reason)
    return _record(task, node, {action: ["", reason]}, by=by, now=now)


def ask_mark(node: Node, mark: Mark, *, looked_at: str, by: User, reason: str, now: datetime) -> NodeTask:
    """Record that the user wants the taint or label, with its audit entry; `looked_at` is the fingerprint of what the preview was about.
    Raise Rejected when the mark or the reason is refused, when the node has changed since, and while another task of it is open."""
    if problem := refusal(mark, node):
        raise rejection(problem, path="key")
    reason = _checked_reason(reason, is_needed=True)
    if looked_at != fingerprint(node):
        changed = _("The node's labels or taints have changed since this page was loaded. Look again at the preview.")
        raise rejection(changed, path="action")
    stored = {"key": mark.key, "value": mark.value, "effect": mark.effect}
    task = NodeTask(action=mark.action, reason=reason, mark=stored, looked_at=looked_at)
    return _record(task, node, {mark.action: ["", str(mark)], "reason": ["", reason]}, by=by, now=now)


def mark_of(task: NodeTask) -> Mark | None:
    """Return the taint or label that the task is about; None for one about something else."""
    return Mark(task.action, **task.mark) if task.mark else None


def _checked_reason(reason: str, *, is_needed: bool) -> str:
    reason = one_line(reason)
    if is_needed and not reason:
        raise rejection(_("Say why: others read it on the node's page."), path="reason")
    if len(reason) > REASON_LONGEST:
        raise rejection(
            _("The reason is too long: at most {longest} characters.", longest=REASON_LONGEST), path="reason"
        )
    return reason


def _record(task: NodeTask, node: Node, changes: Mapping[str, list[str]], *, by: User, now: datetime) -> NodeTask:
    task.node_name, task.node_uid = node.metadata.name, node.metadata.uid
    task.actor, task.actor_name, task.asked_at = by, by.get_username(), now
    try:
        with transaction.atomic():
            if task.action == Action.UNCORDON:
                _drains(task.node_name).update(ended_at=now, outcome=NodeTask.Outcome.CANCELLED, trouble="")
            task.save(force_insert=True)
            write_entry(by, task, changes, at=now)
    except IntegrityError as error:
        is_busy = _("Another request for this node is still being carried out; wait until it is.")
        raise rejection(is_busy, path="action") from error
    return task


def is_draining(node_name: str) -> bool:
    return _drains(node_name).exists()


def _drains(node_name: str) -> QuerySet[NodeTask]:
    return NodeTask.objects.filter(node_name=node_name, ended_at=None, action=Action.DRAIN)


def open_tasks() -> list[NodeTask]:
    """Return what is to be done, oldest first."""
    return list(NodeTask.objects.filter(ended_at=None).order_by("pk"))


def end(task: NodeTask, outcome: str, now: datetime, trouble: str = "") -> None:
    """Close the task, unless it is closed; `trouble` says why it was refused."""
    NodeTask.objects.filter(pk=task.pk, ended_at=None).update(ended_at=now, outcome=outcome, trouble=trouble[:500])


def purge(now: datetime, at_most: int) -> int:
    """Delete tasks that ended a day ago, of which the audit log keeps what was asked; see `grid.controller.housekeeping`."""
    ids = list(NodeTask.objects.filter(ended_at__lt=now - KEPT_FOR).values_list("pk", flat=True)[:at_most])
    NodeTask.objects.filter(pk__in=ids).delete()
    return len(ids)


def note_trouble(task: NodeTask, trouble: str) -> None:
    """Say on the page why the task does not go on."""
    trouble = trouble[:500]
    if trouble != task.trouble:
        NodeTask.objects.filter(pk=task.pk, ended_at=None).update(trouble=trouble)


def note_progress(task: NodeTask, progress: object) -> bool:
    """Store how far the drain is; return False when it is over, because somebody has cancelled it."""
    return bool(NodeTask.objects.filter(pk=task.pk, ended_at=None).update(progress=progress, trouble=""))
