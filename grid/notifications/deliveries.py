"""Gives out what waits to be sent, and records what became of it.

Whoever takes a delivery moves its next try beyond the time that sending may take, if nobody has done so before: of two senders one gets
it, and one that dies leaves it to the next. So it is sent at least once, and twice only when a sender dies between sending and recording.

A person's deliveries through one channel go out one after the other, mails that wait together as one. A failure makes all of them wait,
so a server that hangs costs one try at a time. What is repeated is the same message: receivers drop a second one of the same id.
"""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, F, Max, Min, OuterRef, Q, QuerySet

from grid.configuration import NOTIFICATIONS_PER_HOUR, value_of
from grid.core.translation import gettext as _
from grid.database.encryption import Undecryptable, decrypt
from grid.database.turns import PersonTurns
from grid.models import Delivery, User, WebhookTarget
from grid.notifications.channels import letter_to_send, sends_mail
from grid.notifications.letters import ALONE, LETTERS, TEST, Payload, SendResult

LEASE = timedelta(minutes=5)  # longer than sending takes
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
MOST_TRIES = 8  # the last one about two hours after the first
MOST_AGE = timedelta(days=1)
MERGED = 50  # notifications in one mail
MAIL_GAP = timedelta(minutes=1)  # between two mails to one person
_ERROR_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is sent to one person in one message. `problem` says why it cannot be; `address` is of mail or a URL."""

    user_id: int
    channel: str
    ids: Sequence[int]
    payloads: Sequence[Payload]
    message: UUID
    taken_until: datetime
    address: str = ""
    secret: str = ""
    problem: SendResult | None = None


def wait_after(tries: int) -> timedelta:
    """Return the time until the next try after so many; it doubles."""
    return min(LONGEST_WAIT, FIRST_WAIT * (1 << min(tries - 1, 30)))


def due_deliveries(now: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(next_try_at__lte=now)


def take_due(
    channel: str, *, busy: Collection[int], at_most: int, now: datetime, turns: PersonTurns[int] | None = None
) -> list[Parcel]:
    """Take what is due for `at_most` people, in `turns` and then the longest waiting, without those who are `busy` or at their limit."""
    due = due_deliveries(now).filter(channel=channel).exclude(user__in=busy)
    if not due.exists():  # as nearly each time; the rest takes Django longer to ask than the database to answer
        return []
    tried = Delivery.objects.filter(channel=channel, next_try_at__gt=now, tries__gt=0).exclude(payload__event__in=ALONE)
    due = due.filter(Q(payload__event__in=ALONE) | ~Q(user__in=tried.values("user")))
    if channel == Delivery.Channel.EMAIL:
        recent = Delivery.objects.filter(user=OuterRef("user"), channel=channel, sent_at__gt=now - MAIL_GAP)
        due = due.filter(Q(payload__event__in=ALONE) | ~Exists(recent))
    people = due.order_by().values("user").annotate(first=Min("next_try_at")).order_by("first", "user")
    waiting = ((user, user) for user in people.values_list("user", flat=True))
    in_turn = (turns or PersonTurns[int]()).each(waiting)
    taken = (_take(due.filter(user=user), channel, now) for user, _ in in_turn if not is_at_limit(user, channel, now))
    return list(itertools.islice(filter(None, taken), at_most))


def is_at_limit(user_id: int, channel: str, now: datetime) -> bool:
    """Return whether as much was sent to a person through a channel within an hour as may be."""
    sent = Delivery.objects.filter(user=user_id, channel=channel, sent_at__gt=now - timedelta(hours=1))
    return sent.count() >= value_of(NOTIFICATIONS_PER_HOUR)


def _take(due: QuerySet[Delivery], channel: str, now: datetime) -> Parcel | None:
    alone = due.filter(payload__event__in=ALONE).order_by("pk").first()
    first = alone or due.order_by("pk").first()
    if first is None:
        return None
    rows = [first]
    if channel == Delivery.Channel.EMAIL and alone is None:
        together = due.filter(message=first.message) if first.tries else due.filter(tries=0)
        rows = list(together.order_by("pk")[:MERGED])
    until = now + LEASE
    taken: list[Delivery] = []
    for row in rows:
        message = (taken or [row])[0].message
        as_read = Delivery.objects.filter(pk=row.pk, next_try_at=row.next_try_at, tries=row.tries)
        if as_read.update(next_try_at=until, tries=F("tries") + 1, message=message):
            taken.append(row)
    if not taken:
        return None
    head, *others = taken
    address, secret, payload, problem = _where(head.user_id, channel, head.payload)
    ids, payloads = [row.pk for row in taken], [payload, *(row.payload for row in others)]
    return Parcel(head.user_id, channel, ids, payloads, head.message, until, address, secret, problem)


def _where(user_id: int, channel: str, payload: Payload) -> tuple[str, str, Payload, SendResult | None]:
    """Return the address, the secret, the first message as it is sent, and why it cannot be sent there, as it is now."""
    user = User.objects.only("email", "is_active").get(pk=user_id)
    if not user.is_active:
        return "", "", payload, SendResult(_("The account was closed."), True)
    if channel == Delivery.Channel.EMAIL:
        if not sends_mail():
            return "", "", payload, SendResult(_("The controller knows no mail server. Tell an admin."))
        if payload["event"] in LETTERS:
            address, letter, problem = letter_to_send(user_id, payload)
            return address, "", letter, problem
        gone = SendResult(_("Your account no longer has an e-mail address."), True)
        return user.email, "", payload, None if user.email else gone
    target = WebhookTarget.objects.filter(user=user_id).first()
    if target is None:
        return "", "", payload, SendResult(_("You have removed the webhook."), True)
    try:
        return target.url, decrypt(target.secret), payload, None
    except Undecryptable:
        unreadable = _("The secret of your webhook can no longer be read. Set the webhook again.")
        return "", "", payload, SendResult(unreadable, True)


def record_result(parcel: Parcel, result: SendResult, *, now: datetime) -> None:
    """Record what became of a parcel: it was sent, is tried again, or is given up."""
    rows = Delivery.objects.filter(pk__in=parcel.ids, sent_at__isnull=True)
    if result.is_sent:
        rows.update(sent_at=now, next_try_at=None, error="")
        return
    error = result.error[:_ERROR_LENGTH]
    mine = rows.filter(next_try_at=parcel.taken_until)  # unless another sender has it by now
    over = Q(tries__gte=MOST_TRIES) | Q(at__lte=now - MOST_AGE) | Q(payload__event=TEST)
    mine.filter(Q() if result.is_final else over).update(next_try_at=None, error=error)
    tries = mine.aggregate(Max("tries"))["tries__max"]
    if tries is not None:
        mine.update(next_try_at=now + wait_after(tries), error=error)
