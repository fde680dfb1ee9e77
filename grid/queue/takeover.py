"""Taking over the queue: for a bounded time an operator decides by hand what starts; only what operators have put in front does. Nothing
else is written to what waits, so afterwards everybody stands where he stood: first in first out, and users in turn. The time does not
count towards a queued execution's timeout. The caller checks rights."""

from datetime import datetime, timedelta

from django.db import transaction

from grid.audit.entries import write_entry
from grid.core.errors import rejection
from grid.core.reasons import Reason
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, moment_words, one_line
from grid.models import DataPlane, QueueTakeover, User
from grid.queue.gate import taken_over, takeover_words

MINUTES = (15, 30, 60, 120, 240, 480)
REASON_LONGEST = 200


def current_takeover(now: datetime) -> QueueTakeover | None:
    return QueueTakeover.objects.in_force(now).order_by("pk").first()


def last_end(now: datetime) -> datetime | None:
    """Return when the latest one ended; None without any."""
    ended = QueueTakeover.objects.filter(until_at__lte=now)
    return ended.order_by("-until_at").values_list("until_at", flat=True).first()


def reason_of(takeover: QueueTakeover) -> Reason:
    """Return why something queued waits. It is the same at any time, because it is stored with each queued execution."""
    return taken_over(takeover.actor_name, takeover.until_at, takeover.reason)


def takeover_sentence(takeover: QueueTakeover) -> str:
    return takeover_words(reason_of(takeover).values)


def take_over(*, by: User, minutes: int, reason: str, now: datetime) -> QueueTakeover:
    """Take over the queue for so many minutes. Raise Rejected without a reason, and while somebody has it: the sentence says who."""
    reason = one_line(reason)
    if not reason or len(reason) > REASON_LONGEST:
        sentence = _("Say why in at most {longest} characters: everybody who waits reads it.", longest=REASON_LONGEST)
        raise rejection(sentence)
    if minutes not in MINUTES:
        raise rejection(_("Choose for how long."))
    with transaction.atomic():
        _lock()
        if (other := current_takeover(now)) is not None:
            sentence = _("{actor} has taken over the queue until {until}: {reason}")
            until, why = moment_words(other.until_at), as_sentence(other.reason)
            raise rejection(sentence.format(actor=other.actor_name, until=until, reason=why))
        name, until_at = by.get_username(), now + timedelta(minutes=minutes)
        takeover = QueueTakeover.objects.create(
            actor=by, actor_name=name, reason=reason, from_at=now, until_at=until_at
        )
        changes = {"taken over": ["", _("for {minutes} minutes", minutes=minutes)], "reason": ["", reason]}
        write_entry(by, takeover, changes, at=now)
    return takeover


def give_back(*, by: User, now: datetime) -> None:
    """End it now, whoever has it. Raise Rejected when nobody has."""
    with transaction.atomic():
        _lock()
        takeover = current_takeover(now)
        if takeover is None:
            raise rejection(_("Nobody has taken over the queue now; it goes by turn."))
        was, takeover.until_at = takeover.until_at, now
        takeover.save(update_fields=["until_at"])
        until, at = _("until {until}", until=moment_words(was)), _("at {moment}", moment=moment_words(now))
        write_entry(by, takeover, {"given back": [until, at]}, at=now)


def _lock() -> None:
    """Let two operators at once decide one after the other."""
    list(DataPlane.objects.select_for_update(no_key=True).order_by("pk").values_list("pk"))
