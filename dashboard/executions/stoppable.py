"""Reads what somebody wants to stop, hold or release together, in a few queries, synchronously."""

from collections.abc import Collection
from dataclasses import replace

from django.db.models import Count, Q

from dashboard.executions.viewmodels.stopping import Decision, StopLine
from dashboard.shell.access import Viewer, may_observe, may_operate
from dashboard.shell.routes import valid_ids
from dashboard.shell.viewmodels.states import state_word
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.models import Execution, Job, Membership, QueueOrder


def stoppable(viewer: Viewer, asked: Collection[str]) -> list[StopLine]:
    """Return those of the executions that the viewer may see, in the order of their launch. What is no id is left out."""
    ids = valid_ids(asked)
    roles = dict(Membership.objects.filter(user=viewer.id).values_list("project_id", "role"))
    rows = Execution.objects.filter(pk__in=ids).select_related("owner", "project").defer("spec")
    clusters = Execution.objects.filter(attached_to__in=ids, settled_at__isnull=True, ended_at__isnull=True)
    attached = {row.attached_to_id: str(row) for row in clusters}
    return [
        StopLine(
            id=row.pk,
            name=str(row),
            owner=row.owner.get_username(),
            project=row.project.name,
            state=state_word(row.state),
            is_own=row.owner_id == viewer.id,
            ends_too=attached.get(row.pk, ""),
            why_not=_why_not(viewer, row, roles.get(row.project_id)),
        )
        for row in rows.order_by("requested_at", "pk")
        if row.owner_id == viewer.id or row.project_id in roles or may_observe(viewer)
    ]


def in_queue(viewer: Viewer, asked: Collection[str], do: Decision) -> list[StopLine]:
    """Return those executions that the viewer may see, with why they cannot be held, released or cancelled."""
    ids = valid_ids(asked)
    waiting = set(Execution.objects.queued().filter(pk__in=ids).values_list("pk", flat=True))
    held = set(QueueOrder.objects.filter(pk__in=ids, held_at__isnull=False).values_list("pk", flat=True))

    def why_not(line: StopLine) -> str:
        if line.id not in waiting:
            return _("It no longer waits.")
        if do == "cancel":
            return line.why_not
        if (do == "hold") == (line.id in held):
            return _("It is held already.") if do == "hold" else _("Nobody holds it.")
        return ""

    return [
        replace(line, why_not=why_not(line), ends_too=line.ends_too if do == "cancel" else "")
        for line in stoppable(viewer, asked)
    ]


def jobs_with_runs(viewer: Viewer, asked: Collection[str]) -> list[StopLine]:
    """Return those of the jobs that are the viewer's own, with how many of their runs have not ended."""
    own = Job.objects.filter(pk__in=valid_ids(asked), owner=viewer.id, deleted_at__isnull=True)
    counted = own.select_related("project").annotate(open=Count("runs", filter=Q(runs__outcome="")))
    return [
        StopLine(
            id=job.pk,
            name=str(job),
            owner=viewer.username,
            project=job.project.name,
            state=_("{runs} not ended", runs=plural(job.open, "run", "runs")),
            is_own=True,
            why_not="" if job.open else _("None of its runs is left to stop."),
        )
        for job in counted.order_by("-launched_at", "-pk")
    ]


def _why_not(viewer: Viewer, row: Execution, role: str | None) -> str:
    if row.is_final:
        return _("It has already ended.")
    if row.owner_id == viewer.id or role == "owner" or may_operate(viewer):
        return ""
    return _("Only its owner, the project's owner, operators and admins can stop it.")
