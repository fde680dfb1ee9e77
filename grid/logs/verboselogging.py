"""Verbose logs of a component or about an execution, for an hour: begun and ended with an audit entry. The caller checks rights.

Nothing is changed in running pods: frameworks read their level at the start of a program. What grows is what our processes log.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction

from grid.audit.entries import write_entry
from grid.core.errors import rejection
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, moment_words, one_line
from grid.models import DataPlane, Execution, User, VerboseLogging

PERIOD = timedelta(hours=1)
REASON_LONGEST = 200
MOST_EXECUTIONS = 20  # each line at DEBUG is compared with all of them
COMPONENTS = dict(VerboseLogging.Component.choices)


@dataclass(frozen=True, slots=True)
class VerboseTimes:
    """Until when a component logs more, in seconds since the epoch (0.0: it does not), and until when more is logged about executions."""

    until: float = 0.0
    executions: Mapping[str, float] = field(default_factory=dict)


def times_of(component: str, now: datetime) -> VerboseTimes:
    until, executions = 0.0, dict[str, float]()
    for row in VerboseLogging.objects.in_force(now):
        if row.component == component:
            until = max(until, row.until_at.timestamp())
        elif row.execution:
            executions[row.execution] = row.until_at.timestamp()
    return VerboseTimes(until, executions)


def begin(*, component: str = "", execution: str = "", by: User, reason: str, now: datetime) -> VerboseLogging:
    """Log more for an hour about the component or, without one, the execution. Raise Rejected with what is wrong."""
    reason = one_line(reason)
    if not reason or len(reason) > REASON_LONGEST:
        sentence = _("Say why in at most {longest} characters: it is in the audit log.", longest=REASON_LONGEST)
        raise rejection(sentence, path="reason")
    if component and component not in COMPONENTS:
        raise rejection(_("Choose a component, or the id of an execution."), path="subject")
    if not component:
        _refuse_unknown(execution)
    with transaction.atomic():
        # Two operators at once decide one after the other.
        list(DataPlane.objects.select_for_update(no_key=True).order_by("pk").values_list("pk"))
        VerboseLogging.objects.exclude(pk__in=VerboseLogging.objects.in_force(now)).delete()
        subject = {"component": component, "execution": "" if component else execution}
        if (other := VerboseLogging.objects.in_force(now).filter(**subject).first()) is not None:
            about = {"actor": other.actor_name, "until": moment_words(other.until_at)}
            about["reason"] = as_sentence(other.reason)
            raise rejection(_("{actor} has it logged until {until} already: {reason}", **about), path="subject")
        if not component and VerboseLogging.objects.in_force(now).exclude(execution="").count() >= MOST_EXECUTIONS:
            sentence = _("More is logged about {most} executions already. End one of them first.", most=MOST_EXECUTIONS)
            raise rejection(sentence, path="subject")
        who = {"actor": by, "actor_name": by.get_username(), "reason": reason}
        row = VerboseLogging.objects.create(**subject, **who, from_at=now, until_at=now + PERIOD)
        until = _("until {until}", until=moment_words(row.until_at))
        write_entry(by, row, {"verbose logs": ["", until], "reason": ["", reason]}, at=now)
    return row


def end(pk: int, *, by: User, now: datetime) -> VerboseLogging:
    """End it now, whoever has begun it. Raise Rejected when it has ended."""
    with transaction.atomic():
        row = VerboseLogging.objects.select_for_update().in_force(now).filter(pk=pk).first()
        if row is None:
            raise rejection(_("That has ended already."), path="subject")
        was, row.until_at = row.until_at, now
        row.save(update_fields=["until_at"])
        until, ended = _("until {until}", until=moment_words(was)), _("ended {moment}", moment=moment_words(now))
        write_entry(by, row, {"verbose logs": [until, ended]}, at=now)
    return row


def _refuse_unknown(execution: str) -> None:
    row = Execution.objects.filter(pk=execution[:40]).only("settled_at").first() if execution else None
    if row is None:
        raise rejection(_("There is no execution with this id. It stands in the address of its page."), path="subject")
    if row.settled_at is not None:
        sentence = _("This execution has ended: nothing more is logged about it. See its support bundle.")
        raise rejection(sentence, path="subject")
