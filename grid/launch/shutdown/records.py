"""Reads the running workspaces and apps with their limits, and writes what is announced, withdrawn and stopped.

Each decision is written on the revision that was read with it, in one transaction with its line of history and its notification. So a
person who keeps an execution while it is being stopped, or a second controller, is never overruled unseen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Max, Q

from grid.launch import lifecycle
from grid.launch.changes import record_change
from grid.launch.departures import BY
from grid.launch.notifications.outbox import tell_of_coming_stop
from grid.launch.shutdown.limits import KINDS, OwnLimits, StopLimits, limits_of, values_in_force
from grid.launch.shutdown.rules import Announce, Decision, Life, LookOutcome, PlannedStop, Stop, decide, last_active
from grid.launch.shutdown.words import announcement, stop_sentence
from grid.launch.spec import base_url
from grid.launch.stopping import request_stop
from grid.models import Execution, State, StopPlan, WorkspaceGrant

_LIVES = Q(kind__in=KINDS, state=State.RUNNING, stop_requested_at__isnull=True, started_at__isnull=False)
_EVIDENCE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """One running workspace or app, as it was read: what decides about it, and where its program answers."""

    id: str
    kind: str
    revision: int
    limits: StopLimits
    life: Life
    looked_at: datetime | None = None
    evidence: str = ""
    is_unknown: bool = False
    port: int = 0
    base_url: str = "/"
    used_at: datetime | None = None
    clusters: tuple[str, ...] = field(default=())


def watched(data_plane: str) -> list[WatchedRun]:
    """Return the running workspaces and apps for which a limit holds or an announcement stands, in at most four queries."""
    rows = Execution.objects.in_data_plane(data_plane).unsettled().filter(_LIVES)
    found = _read(rows.select_related("tier", "project", "stop_plan").order_by("requested_at", "pk"))
    return [run for run in found if run.limits.any or run.life.announced is not None]


def watched_run(execution: Execution) -> WatchedRun | None:
    """Return one execution as `watched` reads it, whether or not a limit holds; None when it does not run."""
    rows = Execution.objects.filter(_LIVES, pk=execution.pk)
    return next(iter(_read(rows.select_related("tier", "project", "stop_plan"))), None)


def store_looks(outcomes: Mapping[str, LookOutcome], runs: Iterable[WatchedRun], now: datetime) -> list[WatchedRun]:
    """Write what was seen, and return the runs with it. Of an execution that was deleted meanwhile nothing is written."""
    seen = [_with(run, outcomes[run.id], now) for run in runs if run.id in outcomes]
    present = set(Execution.objects.filter(pk__in=[run.id for run in seen]).values_list("pk", flat=True))
    StopPlan.objects.bulk_create(
        (
            StopPlan(
                execution_id=run.id,
                active_at=run.life.active_at,
                looked_at=run.looked_at,
                evidence=run.evidence[:_EVIDENCE_LENGTH],
                is_unknown=run.is_unknown,
            )
            for run in seen
            if run.id in present
        ),
        batch_size=200,
        update_conflicts=True,
        unique_fields=["execution"],
        update_fields=["active_at", "looked_at", "evidence", "is_unknown"],
    )
    return seen


def settle(runs: Iterable[WatchedRun], now: datetime) -> list[tuple[str, str]]:
    """Announce, withdraw and stop what is due; return the id and cause of each that was stopped."""
    stopped = []
    for run in runs:
        decision = decide(run.life, run.limits, now)
        if decision is not None and _write(run, decision, now) and isinstance(decision, Stop):
            stopped.append((run.id, decision.stop.cause))
    return stopped


def _write(run: WatchedRun, decision: Decision, now: datetime) -> bool:
    """Return whether the decision was written; False when the execution was written since it was read."""
    with transaction.atomic():
        row = Execution.objects.select_for_update(no_key=True).filter(_LIVES, pk=run.id, revision=run.revision).first()
        if row is None:
            return False
        if isinstance(decision, Stop):
            sentence = stop_sentence(decision.stop.cause, run.limits, idle=_idle(run, now), evidence=run.evidence)
            record_change(row, {}, reason="StoppedByRule", message=sentence, by="", now=now)
            request_stop(row, by=BY, reason=decision.stop.cause, now=now)
        elif isinstance(decision, Announce):
            stop = decision.stop
            sentence = announcement(
                stop.cause, run.limits, stops_at=stop.at, idle=_idle(run, now), evidence=run.evidence, now=now
            )
            _announce(run.id, stop)
            record_change(row, {}, reason="StopAnnounced", message=sentence, by="", now=now)
            tell_of_coming_stop(run.id, sentence, now=now)
        else:
            _announce(run.id, None)
            lifecycle.update(run.id, {}, revision=run.revision, now=now)  # so that its page is read again
    return True


def _announce(id: str, stop: PlannedStop | None) -> None:
    values = {"cause": stop.cause if stop else "", "stops_at": stop.at if stop else None}
    StopPlan.objects.update_or_create(execution_id=id, defaults=values)


def _idle(run: WatchedRun, now: datetime) -> float:
    """Return for how many seconds it is idle."""
    return (now - (run.life.active_at or now)).total_seconds()


def _with(run: WatchedRun, outcome: LookOutcome, now: datetime) -> WatchedRun:
    look = outcome.look
    life = replace(
        run.life,
        active_at=last_active(run.life.active_at, run.looked_at, look, now),
        is_idle_known=look.is_known and not look.is_active,
    )
    looked_at = now if look.is_known else run.looked_at
    return replace(run, life=life, looked_at=looked_at, evidence=outcome.evidence, is_unknown=not look.is_known)


def _read(rows: Iterable[Execution]) -> list[WatchedRun]:
    values, found = values_in_force(), list(rows)
    limits = {row.pk: _limits(row, values) for row in found}
    idle = [row.pk for row in found if limits[row.pk].idle is not None]
    used = _used_at(idle)
    clusters: dict[str, list[str]] = {}
    if idle:
        attached = Execution.objects.unsettled().filter(attached_to__in=idle).order_by("pk")
        for parent, id in attached.values_list("attached_to", "pk"):
            clusters.setdefault(str(parent), []).append(id)
    return [_run(row, limits[row.pk], used.get(row.pk), clusters.get(row.pk, ())) for row in found]


def _used_at(ids: Sequence[str]) -> Mapping[str, datetime]:
    if not ids:
        return {}
    grants = WorkspaceGrant.objects.filter(execution__in=ids, used_at__isnull=False).order_by()
    return dict(grants.values_list("execution").annotate(Max("used_at")))


def _limits(row: Execution, values: Mapping[str, int]) -> StopLimits:
    tier, project = row.tier, row.project
    own = OwnLimits(tier.idle_minutes, tier.lifetime_hours)
    return limits_of(row.kind, values, own, OwnLimits(project.idle_minutes, project.lifetime_hours))


def _run(row: Execution, limits: StopLimits, used_at: datetime | None, clusters: Iterable[str]) -> WatchedRun:
    plan: StopPlan | None = getattr(row, "stop_plan", None)
    assert row.started_at is not None
    life = Life(row.started_at)
    if plan is not None:
        life = Life(
            started_at=row.started_at,
            active_at=plan.active_at,
            kept_idle_until=plan.kept_idle_until,
            kept_lifetime_until=plan.kept_lifetime_until,
            announced=PlannedStop(plan.cause, plan.stops_at) if plan.stops_at else None,
        )
    return WatchedRun(
        id=row.pk,
        kind=row.kind,
        revision=row.revision,
        limits=limits,
        life=life,
        looked_at=plan.looked_at if plan else None,
        evidence=plan.evidence if plan else "",
        is_unknown=plan.is_unknown if plan else False,
        port=int(row.spec.get("port") or 0),
        base_url=base_url(str(row.spec.get("address", ""))),
        used_at=used_at,
        clusters=tuple(clusters),
    )
