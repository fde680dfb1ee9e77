"""Keeps an execution longer than a rule would; the caller checks rights."""

from datetime import datetime

from django.db import transaction

from grid.audit.entries import write_entry
from grid.core.errors import Problem, Rejected
from grid.core.reasons import Reason
from grid.core.translation import gettext as _
from grid.executions.lifecycle import record_change
from grid.executions.stopping import IDLE
from grid.models import Execution, StopPlan, User
from grid.workspaces.shutdown.limits import StopLimits
from grid.workspaces.shutdown.records import watched_run
from grid.workspaces.shutdown.rules import PlannedStop, keepable_until
from grid.workspaces.shutdown.words import limit_words

WITHDRAWN, KEPT, BOUND = "withdrawn", "kept", "bound"


def extend_lifetime(execution: Execution, *, stops_at: datetime, by: User, now: datetime) -> datetime:
    """Keep it beyond the announced stop of that time, and return until when. Raise Rejected.

    Two people who see the same announcement extend it once: the second is told that it was kept.
    """
    while True:
        with transaction.atomic():
            row = Execution.objects.select_for_update(no_key=True).get(pk=execution.pk)
            run = watched_run(row)
            if run is None:
                raise Rejected([Problem("", _("It has ended or is being stopped."), "ended")])
            announced = run.life.announced
            if announced is None or announced.at != stops_at:
                raise Rejected([_already(row, stops_at)])
            until = keepable_until(announced, run.life, run.limits, now)
            if until is None:
                raise Rejected([Problem("", bound_sentence(run.limits), BOUND)])
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
