"""Reads the running workspaces and apps with their limits, and writes what is announced, withdrawn and stopped. Each decision is written
on the revision that was read with it, in one transaction with its line of history and its notification. So a person who keeps an execution
while it is being stopped, or a second controller, is never overruled unseen."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from grid.audit.entries import write_entry
from grid.core.errors import Problem, Rejected, rejection
from grid.core.reasons import ANYBODY, Reason, sentence_of
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.executions import lifecycle
from grid.executions.lifecycle import record_change
from grid.executions.spec import base_url
from grid.executions.stopping import IDLE, request_stop
from grid.models import Execution, State, StopPlan, User, WorkspaceGrant
from grid.notifications.outbox import tell_of_coming_stop
from grid.projects.departures import BY
from grid.workspaces.shutdown import rules
from grid.workspaces.shutdown.rules import LOOK, Life, LookOutcome, PlannedStop, Stop, StopLimits, decide, limit_words

logger = logging.getLogger(__name__)

_LIVES = Q(kind__in=rules.KINDS, state=State.RUNNING, stop_requested_at__isnull=True, started_at__isnull=False)
_EVIDENCE_LENGTH = 300
WITHDRAWN, KEPT, BOUND = "withdrawn", "kept", "bound"


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
    front_port: int = 0
    is_straight: bool = False  # an ingress sends people's requests straight to its front
    base_url: str = "/"
    used_at: datetime | None = None
    clusters: tuple[str, ...] = field(default=())


def watched(data_plane: str) -> list[WatchedRun]:
    """Return the running workspaces and apps for which a limit holds or an announcement stands, in at most four queries."""
    rows = Execution.objects.in_data_plane(data_plane).unsettled().filter(_LIVES).order_by("requested_at", "pk")
    return [run for run in _read(rows) if run.limits.any or run.life.announced is not None]


def watched_run(execution: Execution) -> WatchedRun | None:
    """Return one execution as `watched` reads it, whether or not a limit holds; None when it does not run."""
    return next(iter(_read(Execution.objects.filter(_LIVES, pk=execution.pk))), None)


def store_looks(outcomes: Mapping[str, LookOutcome], runs: Iterable[WatchedRun], now: datetime) -> list[WatchedRun]:
    """Write what was seen, and return the runs with it. Of an execution that was deleted meanwhile nothing is written."""
    seen = [_with(run, outcomes[run.id], now) for run in runs if run.id in outcomes]
    present = set(Execution.objects.filter(pk__in=[run.id for run in seen]).values_list("pk", flat=True))
    plans = []
    for run in seen:
        words, at = run.evidence[:_EVIDENCE_LENGTH], {"active_at": run.life.active_at, "looked_at": run.looked_at}
        plans.append(StopPlan(execution_id=run.id, evidence=words, is_unknown=run.is_unknown, **at))
    StopPlan.objects.bulk_create(
        (plan for plan in plans if plan.execution_id in present),
        batch_size=200,
        update_conflicts=True,
        unique_fields=["execution"],
        update_fields=["active_at", "looked_at", "evidence", "is_unknown"],
    )
    return seen


def carry_out(run: WatchedRun, decision: rules.Announce | rules.Withdraw | rules.Stop, now: datetime) -> bool:
    """Write the decision; return False without writing when the execution was written since it was read."""
    idle = (now - (run.life.active_at or now)).total_seconds()
    with transaction.atomic():
        row = Execution.objects.select_for_update(no_key=True).filter(_LIVES, pk=run.id, revision=run.revision).first()
        if row is None:
            return False
        if isinstance(decision, rules.Stop):
            cause = decision.stop.cause
            why = rules.stop_reason(cause, run.limits, idle=idle, evidence=run.evidence)
            record_change(row, {}, why, by="", now=now)
            request_stop(row, by=BY, reason=cause, now=now)
        elif isinstance(decision, rules.Announce):
            why = rules.announcement(decision.stop, run.limits, idle=idle, evidence=run.evidence, now=now)
            _announce(run.id, decision.stop)
            record_change(row, {}, why, by="", now=now)
            tell_of_coming_stop(run.id, sentence_of(why, ANYBODY), now=now)
        else:
            _announce(run.id, None)
            lifecycle.update(run.id, {}, revision=run.revision, now=now)  # so that its page is read again
    return True


def _announce(id: str, stop: PlannedStop | None) -> None:
    values = {"cause": stop.cause if stop else "", "stops_at": stop.at if stop else None}
    StopPlan.objects.update_or_create(execution_id=id, defaults=values)


def _with(run: WatchedRun, outcome: LookOutcome, now: datetime) -> WatchedRun:
    seen = outcome.observation
    active_at = rules.last_active(run.life.active_at, run.looked_at, seen, now)
    life = replace(run.life, active_at=active_at, is_idle_known=seen.is_known and not seen.is_active)
    looked_at = now if seen.is_known else run.looked_at
    return replace(run, life=life, looked_at=looked_at, evidence=outcome.evidence, is_unknown=not seen.is_known)


def _read(rows: QuerySet[Execution]) -> list[WatchedRun]:
    """Read only the columns that matter: there may be thousands, each minute."""
    values, runs = rules.values_in_force(), []
    read = rows.values_list(
        "pk", "kind", "revision", "started_at", "spec__port", "spec__address", "spec__front__port", "spec__front__ingress__origin",
        "tier__idle_minutes", "tier__lifetime_hours", "project__idle_minutes", "project__lifetime_hours",
        "stop_plan__active_at", "stop_plan__looked_at", "stop_plan__evidence", "stop_plan__is_unknown", "stop_plan__stops_at",
        "stop_plan__kept_idle_until", "stop_plan__kept_lifetime_until", "stop_plan__cause",
        named=True,
    )  # fmt: skip
    for row in read:
        own = rules.OwnLimits(row.tier__idle_minutes, row.tier__lifetime_hours)
        its_projects = rules.OwnLimits(row.project__idle_minutes, row.project__lifetime_hours)
        assert row.started_at is not None, "it is one of `_LIVES`"
        life = Life(
            started_at=row.started_at,
            active_at=row.stop_plan__active_at,
            kept_idle_until=row.stop_plan__kept_idle_until,
            kept_lifetime_until=row.stop_plan__kept_lifetime_until,
            announced=PlannedStop(row.stop_plan__cause, row.stop_plan__stops_at) if row.stop_plan__stops_at else None,
        )
        runs.append(
            WatchedRun(
                id=row.pk,
                kind=row.kind,
                revision=row.revision,
                limits=rules.limits_of(row.kind, values, own, its_projects),
                life=life,
                looked_at=row.stop_plan__looked_at,
                evidence=row.stop_plan__evidence or "",
                is_unknown=bool(row.stop_plan__is_unknown),
                port=int(row.spec__port or 0),
                front_port=int(row.spec__front__port or 0),
                is_straight=bool(row.spec__front__ingress__origin),
                base_url=base_url(row.spec__address or ""),
            )
        )
    return _with_use(runs)


def _with_use(runs: Sequence[WatchedRun]) -> list[WatchedRun]:
    """Add to those that may be stopped when idle when people have used them, and their clusters."""
    ids = [run.id for run in runs if run.limits.idle is not None]
    if not ids:
        return list(runs)
    grants = WorkspaceGrant.objects.filter(execution__in=ids, used_at__isnull=False).order_by()
    used = dict(grants.values_list("execution").annotate(Max("used_at")))
    clusters: dict[str, list[str]] = {}
    attached = Execution.objects.unsettled().filter(attached_to__in=ids).order_by("pk")
    for parent, id in attached.values_list("attached_to", "pk"):
        clusters.setdefault(str(parent), []).append(id)
    return [replace(run, used_at=used.get(run.id), clusters=tuple(clusters.get(run.id, ()))) for run in runs]


def extend_lifetime(execution: Execution, *, stops_at: datetime, by: User, now: datetime) -> datetime:
    """Keep it beyond the announced stop of that time, and return until when. Raise Rejected, as for the second of two people who do."""
    while True:
        with transaction.atomic():
            row = Execution.objects.select_for_update(no_key=True).get(pk=execution.pk)
            run = watched_run(row)
            if run is None:
                raise rejection(_("It has ended or is being stopped."), "ended")
            announced = run.life.announced
            if announced is None or announced.at != stops_at:
                raise Rejected([_already(row, stops_at)])
            until = rules.keepable_until(announced, run.life, run.limits, now)
            if until is None:
                raise rejection(bound_sentence(run.limits), BOUND)
            if _write(row, announced, until, by, now):
                return until


def bound_sentence(limits: StopLimits) -> str:
    """Return why a lifetime may not be extended further."""
    sentence = _("It cannot be kept longer than its maximum lifetime of {lifetime} allows: at most until its end.")
    if limits.extension:
        sentence = _(
            "It cannot be kept longer than its maximum lifetime of {lifetime} allows: at most until {extension} beyond it."
        )
    return sentence.format(lifetime=limit_words(limits.lifetime), extension=limit_words(limits.extension))


def _already(row: Execution, stops_at: datetime) -> Problem:
    plan = StopPlan.objects.filter(execution=row).first()
    kept = max((at for at in (plan.kept_idle_until, plan.kept_lifetime_until) if at), default=None) if plan else None
    if kept is not None and kept > stops_at:
        entry = row.lifecycle.filter(reason="KeptLonger").order_by("-at", "-id").first()
        who = entry.actor if entry and entry.actor else _("Somebody")
        return Problem("", _("{name} has already kept it, until {until:%H:%M} UTC.", name=who, until=kept), KEPT)
    return Problem("", _("That stop was withdrawn; see what the page says now."), WITHDRAWN)


def _write(row: Execution, stop: PlannedStop, until: datetime, by: User, now: datetime) -> bool:
    name = by.get_username()
    cause = Reason("KeptLonger", {"by": name, "until": until.isoformat(), "instead_of": stop.at.isoformat()})
    if not record_change(row, {}, cause, by=name, now=now):
        return False
    field = "kept_idle_until" if stop.cause == IDLE else "kept_lifetime_until"
    StopPlan.objects.filter(execution=row).update(**{field: until, "cause": "", "stops_at": None})
    write_entry(by, row, {"stops_at": [stop.at.isoformat(), until.isoformat()]}, at=now)
    return True


class Observer(Protocol):
    """Finds out whether executions are in use."""

    async def observe(self, runs: Sequence[WatchedRun], now: datetime) -> Mapping[str, LookOutcome]:
        """Return by id what is seen of those that may be stopped when idle. It takes seconds at most, whatever their programs do."""
        ...


class ShutdownWatch:
    """Announces and makes the stops of a data plane during one term of leadership."""

    def __init__(self, data_plane: str, database: Database, clock: Callable[[], datetime], observer: Observer) -> None:
        self._data_plane, self._observer = data_plane, observer
        self._database, self._clock = database, clock

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("idle shutdown", LOOK.total_seconds(), self.run_once)

    async def run_once(self) -> None:
        """Look once at all that a limit holds for, and do what is due."""
        runs = await self._database(watched, self._data_plane)
        if not runs:
            return
        asked = [run for run in runs if run.limits.idle is not None]
        outcomes = await self._observer.observe(asked, self._clock()) if asked else {}
        now = self._clock()
        if outcomes:
            seen = {run.id: run for run in await self._database(store_looks, outcomes, asked, now)}
            runs = [seen.get(run.id, run) for run in runs]
        for run in runs:  # each in a turn of its own, so that other work with the database goes between
            decision = decide(run.life, run.limits, now)
            is_written = decision is not None and await self._database(carry_out, run, decision, now)
            if is_written and isinstance(decision, Stop):
                logger.info("execution=%s ends reason=%s", run.id, decision.stop.cause)
