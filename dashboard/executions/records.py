"""Reads stored executions from the database, synchronously: as values for pages, and those that somebody wants to stop or hold together."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.urls import reverse
from django.utils import timezone

from dashboard.executions.kinds import face_of
from dashboard.executions.viewmodels.execution import Companion, ExecutionRecord, LifecycleLine
from dashboard.executions.viewmodels.run_files import RunFilesRecord, RunPlace, SiblingAttempt
from dashboard.executions.viewmodels.stopping import Decision, StopLine
from dashboard.shell.access import Viewer, may_observe, may_operate
from dashboard.shell.routes import valid_ids
from dashboard.shell.viewmodels.states import state_word
from dashboard.starts.startup_records import start_of, usual_start
from dashboard.usage.size_records import size_facts
from dashboard.usage.viewmodels.usage import Spending
from grid.configuration import ACCESS_LOST_TIMEOUT, value_of
from grid.core.errors import Rejected
from grid.core.reasons import Reader
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis import logfindings
from grid.diagnosis.exits import code_words
from grid.diagnosis.logfindings import LogFinding
from grid.jobs.jobsettings import read_record as read_job_record
from grid.models import AppShare, Execution, Job, LogOccurrence, Membership, QueueOrder, RunFiles, State, UsageInterval
from grid.models.environment import Kind

_LIFECYCLE_READ = 1000
_JOINED = ("owner", "project", "environment", "tier", "attached_to", "workspace", "run__job")


def read_record(execution_id: str) -> ExecutionRecord | None:
    """Return an execution with its history; None when there is none. It takes some ten to fifteen queries, whatever there is."""
    execution = Execution.objects.select_related(*_JOINED).filter(pk=execution_id).first()
    if execution is None:
        return None
    project, lost_at = execution.project, execution.access_lost_at
    tier, environment = _part(execution, "tier"), _part(execution, "environment")
    workspace = execution.workspace if execution.workspace and execution.workspace.deleted_at is None else None
    return ExecutionRecord(
        owner_username=execution.owner.get_username(),
        project_id=project.pk,
        project_name=project.name,
        project_roles=dict(project.memberships.values_list("user_id", "role")),
        environment_name=str(environment.get("name") or execution.environment.name),
        image=str(environment.get("image") or execution.environment.image),
        tier_name=str(tier.get("name") or execution.tier.name),
        shared_memory=str(tier.get("shared_memory", execution.tier.shared_memory)),
        cost_per_hour=execution.price_per_hour,
        lifecycle=_lifecycle(execution),
        spending=_spending(execution.pk),
        kind_record=face_of(execution.kind).read(execution, timezone.now()),
        companion=_companion(execution),
        owner_is_active=execution.owner.is_active,
        is_settled=execution.settled_at is not None,
        stops_at=lost_at + timedelta(seconds=value_of(ACCESS_LOST_TIMEOUT)) if lost_at else None,
        workspace_id=workspace.pk if workspace else "",
        workspace_name=str(workspace or ""),
        is_restarting=workspace is not None and workspace.restart_requested_at is not None,
        shared_with=_shared_with(execution) if execution.kind == Kind.APP else {},
        newer_id=_newer_id(execution) if workspace and execution.settled_at is not None else "",
        run=run_place(execution),
        has_page=bool((execution.spec or {}).get("port")),
        files=_files(execution),
        size=size_facts(execution),
        findings=_findings(execution),
        start=start_of(execution.pk),
        usual_start=usual_start(execution.head_tier_id or execution.tier_id, execution.environment_id),
        id=execution.id,
        kind=execution.kind,
        title=execution.title,
        object_name=execution.object_name,
        owner_id=execution.owner_id,
        tier_id=execution.tier_id,
        node_pool=execution.node_pool,
        millicores=execution.millicores,
        memory_bytes=execution.memory_bytes,
        gpus=execution.gpus,
        slots=execution.slots,
        state=execution.state,
        state_since=execution.state_since,
        message=execution.message,
        reason=execution.reason,
        reason_values=execution.reason_values,
        requested_at=execution.requested_at,
        started_at=execution.started_at,
        ended_at=execution.ended_at,
        stop_requested_at=execution.stop_requested_at,
        stop_requested_by=execution.stop_requested_by,
        node_name=execution.node_name,
    )


def _lifecycle(execution: Execution) -> tuple[LifecycleLine, ...]:
    newest = execution.lifecycle.order_by("-at", "-id").values(
        "at", "to_state", "level", "reason", "message", "reason_values", "count", "actor", "event_uid", about=F("object"),
    )[:_LIFECYCLE_READ]  # fmt: skip
    return tuple(LifecycleLine(**line) for line in reversed(newest))


def _shared_with(execution: Execution) -> dict[int, str]:
    return dict(AppShare.objects.filter(execution=execution).values_list("user_id", "user__username"))


def _newer_id(execution: Execution) -> str:
    newer = Execution.objects.unsettled().filter(workspace=execution.workspace_id)
    return newer.values_list("pk", flat=True).first() or ""


def visible_executions(viewer: Viewer) -> QuerySet[Execution]:
    """Return the executions that the viewer may see, by the same rule as `may_see_execution`."""
    if may_observe(viewer):
        return Execution.objects.all()
    mine = Membership.objects.filter(user=viewer.id).values("project")
    return Execution.objects.filter(Q(owner=viewer.id) | Q(project__in=mine))


def _findings(execution: Execution) -> tuple[LogFinding, ...]:
    """Return what was found in its kept log, with the cures of now; an entry that is switched off by now has none."""
    if execution.state not in (State.FINISHING, State.FAILED, State.ERROR):
        return ()
    advice = {entry.key: (entry.cure, entry.link) for entry in logfindings.in_force().patterns}
    occurrences = LogOccurrence.objects.filter(log=execution.pk).values_list("entry", "meaning", "line")
    return tuple(LogFinding(key, meaning, line, *advice.get(key, ("", ""))) for key, meaning, line in occurrences)


def _companion(execution: Execution) -> Companion | None:
    """Return the execution that this one is attached to, or else the newest that is attached to it; None without any."""
    is_attached = execution.attached_to is None
    other = execution.attached_to or execution.attached.order_by("-requested_at").first()
    if other is None:
        return None
    companion = Companion(other.pk, other.kind, str(other), other.object_name, other.state, is_attached)
    if not is_attached:
        return companion
    return replace(companion, node_pool=other.node_pool, kind_record=face_of(other.kind).read(other, None))


def _spending(execution_id: str) -> Spending:
    intervals = UsageInterval.objects.filter(execution=execution_id).order_by()
    ended = intervals.filter(seconds__isnull=False).values_list("price_per_hour").annotate(Sum("seconds"))
    running = intervals.filter(ended_at__isnull=True).values_list("price_per_hour", "began_at")
    return Spending(tuple(ended), tuple(running))


def run_place(execution: Execution) -> RunPlace | None:
    """Return which run and attempt it is; None for what has no run. One query more, for an execution with a run."""
    run = execution.run
    if run is None:
        return None
    try:
        most = read_job_record(run.settings.record).job.retries + 1
    except Rejected:
        most = execution.attempt
    rows = Execution.objects.filter(run=run).exclude(pk=execution.pk).order_by("run", "attempt")
    reader = Reader(execution.owner.get_username(), is_owner=False)
    columns = rows.only("attempt", "state", "reason", "reason_values", "message")
    job, attempt = run.job, execution.attempt
    is_there = job.deleted_at is None
    return RunPlace(
        execution_id=execution.pk,
        job_id=job.pk if is_there else "",
        job_name=str(job),
        number=run.number,
        attempt=attempt,
        most_attempts=most,
        parameters=tuple(run.parameters.items()),
        others=tuple(SiblingAttempt(row.pk, row.attempt, row.state, row.words(reader)) for row in columns),
        message=run.message,
        exit_words="" if execution.exit_code is None else code_words(execution.exit_code),
        again=reverse("job-again", args=[job.pk, run.number]) if is_there else "",
        is_tried_again=execution.state in (State.FAILED, State.ERROR)
        and not (run.outcome or execution.stop_requested_by or attempt >= most),
    )


def _files(execution: Execution) -> RunFilesRecord | None:
    """Return what became of its files in Git; None where they were a volume at launch, which needs no query."""
    files = _part(execution, "files")
    if not files:
        return None
    asked = str(files.get("commit") or files.get("branch") or "main")
    saved = RunFiles.objects.filter(execution=execution.pk).values(
        "began", "ended", "branch", "kept", "problem", "left_out", "left_out_names",
        "results_files", "results_bytes", "results_problem", "results_kept",
    ).first()  # fmt: skip
    record = RunFilesRecord(execution.project_id, execution.object_name, asked)
    return record if saved is None else replace(record, is_reported=True, **saved)


def _part(execution: Execution, name: str) -> dict[str, Any]:
    part = (execution.spec or {}).get(name)
    return part if isinstance(part, dict) else {}


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
        already = _("It is held already.") if do == "hold" else _("Nobody holds it.")
        return already if (do == "hold") == (line.id in held) else ""

    lines = stoppable(viewer, asked)
    return [replace(line, why_not=why_not(line), ends_too=line.ends_too if do == "cancel" else "") for line in lines]


def jobs_with_runs(viewer: Viewer, asked: Collection[str]) -> list[StopLine]:
    """Return those of the jobs that are the viewer's own, with how many of their runs have not ended."""
    own = Job.objects.filter(pk__in=valid_ids(asked), owner=viewer.id, deleted_at__isnull=True)
    counted = own.select_related("project").annotate(open=Count("runs", filter=Q(runs__outcome="")))
    lines = []
    for job in counted.order_by("-launched_at", "-pk"):
        state = _("{runs} not ended", runs=plural(job.open, "run", "runs"))
        why_not = "" if job.open else _("None of its runs is left to stop.")
        lines.append(StopLine(job.pk, str(job), viewer.username, job.project.name, state, True, why_not=why_not))
    return lines


def _why_not(viewer: Viewer, row: Execution, role: str | None) -> str:
    if row.is_final:
        return _("It has already ended.")
    if row.owner_id == viewer.id or role == "owner" or may_operate(viewer):
        return ""
    return _("Only its owner, the project's owner, operators and admins can stop it.")
