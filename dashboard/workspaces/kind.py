"""How workspaces and apps, which rules may stop, are shown on the pages that all executions have."""

from dataclasses import dataclass, replace
from datetime import datetime

from dashboard.executions.kinds import ExecutionKindFace
from dashboard.executions.viewmodels.execution import ExecutionRecord, KindRecord, Person
from dashboard.shell.viewmodels.live import Fragment
from dashboard.workspaces.viewmodels.shutdown import StopOutlook, stop_notice
from dashboard.workspaces.workspace_records import has_stopped
from grid.executions.stopping import LIFETIME
from grid.models import Execution, State
from grid.models.environment import Kind
from grid.workspaces.shutdown.records import bound_sentence, watched_run
from grid.workspaces.shutdown.rules import KINDS, LOOK, coming, keepable_until, limit_words


def stop_outlook(execution: Execution, now: datetime) -> StopOutlook | None:
    """Return it for a running workspace or app for which a limit holds, in at most four queries; None for anything else."""
    if execution.kind not in KINDS or execution.state != State.RUNNING or execution.stop_requested_at is not None:
        return None
    run = watched_run(execution)
    if run is None or not (run.limits.any or run.life.announced):
        return None
    limits, life, announced = run.limits, run.life, run.life.announced
    keep = limit_words(limits.keep) if announced and keepable_until(announced, life, limits, now) else ""
    ends = [stop.at for stop in coming(life, limits) if stop.cause == LIFETIME]
    return StopOutlook(
        idle_limit=limit_words(limits.idle) if limits.idle else "",
        lifetime_limit=limit_words(limits.lifetime) if limits.lifetime else "",
        lifetime_ends_at=ends[0] if ends else None,
        idle_since=life.active_at if limits.idle else None,
        evidence=run.evidence if limits.idle else "",
        is_unknown=run.is_unknown,
        is_in_use=life.active_at is not None and run.looked_at is not None and run.looked_at - life.active_at < LOOK,
        stops_at=announced.at if announced else None,
        is_idle=announced is not None and announced.cause != LIFETIME,
        keep=keep,
        why_not_keep=bound_sentence(limits) if announced and not keep else "",
    )


@dataclass(frozen=True, slots=True)
class _StoppedByRule(KindRecord):
    outlook: StopOutlook | None  # None without a limit


def _fragments(record: ExecutionRecord, viewer: Person) -> list[Fragment]:
    own = record.kind_record
    return [stop_notice(own.outlook if isinstance(own, _StoppedByRule) else None, may_keep=viewer.may_stop)]


APP = ExecutionKindFace(
    Kind.APP,
    read=lambda execution, now: _StoppedByRule(stop_outlook(execution, now)) if now is not None else KindRecord(),
    fragments=_fragments,
)
WORKSPACE = replace(
    APP, kind=Kind.WORKSPACE, launch_context=lambda form, held, running: {"has_stopped": has_stopped(form.user.pk)}
)
