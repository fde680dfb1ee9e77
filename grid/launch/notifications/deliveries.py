"""Gives out what waits to be sent, and records what became of it.

Whoever takes a delivery moves its next try beyond the time that sending may take, on the condition that nobody has done so before: of two
senders one gets it. A sender that dies meanwhile leaves it to the next one. So everything is sent at least once, and twice only when a
sender dies, or is too slow, between sending and recording.

A person's deliveries through one channel go out one after the other, mails that wait together as one. A failure makes all of them wait, so
that a server that hangs costs one try at a time, and nobody else anything.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet

from grid.encryption import Undecryptable, decrypt
from grid.launch.notifications.channels import sends_mail
from grid.launch.notifications.letters import TEST, Payload
from grid.launch.notifications.results import SendResult
from grid.models import Delivery, User, WebhookTarget

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
    problem: str = ""


def wait_after(tries: int) -> timedelta:
    """Return the time until the next try after so many; it doubles."""
    return min(LONGEST_WAIT, FIRST_WAIT * (1 << min(tries - 1, 30)))


def take_due(channel: str, *, busy: Collection[int], at_most: int, now: datetime) -> list[Parcel]:
    """Take what is due, for as many people as `at_most`, whoever has waited longest first; `busy` people are left out."""
    due = Delivery.objects.filter(channel=channel, next_try_at__lte=now).exclude(user__in=busy)
    if channel == Delivery.Channel.EMAIL:
        recent = Delivery.objects.filter(user=OuterRef("user"), channel=channel, sent_at__gt=now - MAIL_GAP)
        due = due.filter(Q(payload__event=TEST) | ~Exists(recent))
    people = due.order_by().values("user").annotate(first=Min("next_try_at")).order_by("first", "user")
    found = (_take(due.filter(user=user), channel, now) for user in people.values_list("user", flat=True)[:at_most])
    return [parcel for parcel in found if parcel is not None]


def _take(due: QuerySet[Delivery], channel: str, now: datetime) -> Parcel | None:
    """Take a person's next message; None when another sender was faster."""
    test = due.filter(payload__event=TEST).order_by("pk").first()
    rows = [test] if test else list(due.order_by("pk")[: MERGED if channel == Delivery.Channel.EMAIL else 1])
    until, taken = now + LEASE, []
    for row in rows:
        as_read = Delivery.objects.filter(pk=row.pk, next_try_at=row.next_try_at, tries=row.tries)
        if as_read.update(next_try_at=until, tries=F("tries") + 1):
            taken.append(row)
    if not taken:
        return None
    address, secret, problem = _where(taken[0].user_id, channel)
    return Parcel(
        taken[0].user_id,
        channel,
        [row.pk for row in taken],
        [row.payload for row in taken],
        taken[0].message,
        until,
        address,
        secret,
        problem,
    )


def _where(user_id: int, channel: str) -> tuple[str, str, str]:
    """Return the address, the secret, and why it cannot be sent there, as it is now."""
    user = User.objects.only("email", "is_active").get(pk=user_id)
    if not user.is_active:
        return "", "", "The account was closed."
    if channel == Delivery.Channel.EMAIL:
        if not sends_mail():
            return "", "", "This installation no longer sends e-mail."
        return user.email, "", "" if user.email else "Your account no longer has an e-mail address."
    target = WebhookTarget.objects.filter(user=user_id).first()
    if target is None:
        return "", "", "You have removed the webhook."
    try:
        return target.url, decrypt(target.secret), ""
    except Undecryptable:
        return "", "", "The secret of your webhook can no longer be read. Set the webhook again."


def record_result(parcel: Parcel, result: SendResult, *, now: datetime) -> None:
    """Record what became of a parcel: it was sent, is tried again, or is given up."""
    rows = Delivery.objects.filter(pk__in=parcel.ids, sent_at__isnull=True)
    if result.is_sent:
        rows.update(sent_at=now, next_try_at=None, error="")
        return
    error = result.error[:_ERROR_LENGTH]
    mine = rows.filter(next_try_at=parcel.taken_until)  # unless another sender has it by now
    over = Q(tries__gte=MOST_TRIES) | Q(at__lte=now - MOST_AGE) | Q(payload__event=TEST)
    mine.filter(Q() if result.is_final or parcel.problem else over).update(next_try_at=None, error=error)
    tries = mine.order_by("tries").values_list("tries", flat=True).last()
    if tries is None:
        return
    again = now + wait_after(tries)
    mine.update(next_try_at=again, error=error)
    others = Delivery.objects.filter(user=parcel.user_id, channel=parcel.channel, next_try_at__lt=again)
    others.exclude(payload__event=TEST).filter(next_try_at__lte=now).update(next_try_at=again)
