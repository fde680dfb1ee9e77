"""The channels by which somebody is told outside of the dashboard: where they lead, and what became of the latest message; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from grid.core.translation import gettext as _
from grid.core.wording import duration
from grid.models import Delivery

NO_SERVER = _("This installation sends no e-mail: an admin has to name a mail server.")
NO_ADDRESS = _("Your account has no e-mail address. Add one to your profile above.")
NO_WEBHOOK = _("Nothing is posted anywhere.")
_TITLES = {"email": _("E-mail"), "webhook": _("Webhook")}


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel of the account's page; `where` says where it leads or why nowhere, `latest` what became of the latest message."""

    name: str
    title: str
    where: str
    is_set_up: bool
    latest: str = ""


@dataclass(frozen=True, slots=True)
class PendingAddress:
    """A new e-mail address that is not used yet. `sentence` says what its owner can do, `trouble` why the letter has not come, or is ""."""

    address: str
    sentence: str
    trouble: str = ""


def pending_address(
    address: str, present: str, until: datetime, letter: Delivery | None, now: datetime
) -> PendingAddress:
    if now >= until:
        return PendingAddress(address, _("Its link is too old. Send it again, or cancel the change."))
    stays = (
        _("Until then {address} stays in use.", address=present)
        if present
        else _("Until then no e-mail is sent to you.")
    )
    sentence = _(
        "Open the link in the letter to it within {duration}. {stays}", duration=duration(until - now), stays=stays
    )
    trouble = latest_words(letter, now) if letter is not None and letter.sent_at is None and letter.error else ""
    return PendingAddress(address, sentence, trouble)


def channel_views(*, sends_mail: bool, address: str, url: str, latest: Mapping[str, str]) -> list[ChannelView]:
    """Return the channels; `latest` has the words of the latest message of each that has had one."""
    email = NO_SERVER if not sends_mail else _("To {address}.", address=address) if address else NO_ADDRESS
    webhook = _("Posted to {url}.", url=url) if url else NO_WEBHOOK
    return [
        ChannelView(name, _TITLES[name], where, is_set_up, latest.get(name, "") if is_set_up else "")
        for name, where, is_set_up in (("email", email, sends_mail and bool(address)), ("webhook", webhook, bool(url)))
    ]


def latest_words(delivery: Delivery, now: datetime, *, limit: int = 0) -> str:
    """Return what became of a message so far; `limit` is how many a person gets within an hour, 0 while it is not reached."""
    if delivery.sent_at is not None:
        return _("The latest was sent {duration} ago.", duration=duration(now - delivery.sent_at))
    if delivery.next_try_at is None:
        return _("The latest was given up. {error}", error=delivery.error)
    if delivery.error:
        return _(
            "The latest was not sent yet. {error} It is tried again in {next_try_at}.",
            error=delivery.error,
            next_try_at=duration(delivery.next_try_at - now),
        )
    if limit:
        return _(
            "The latest waits: {most:,} were sent to you within an hour, and no more may be. It is sent later by itself; an admin can "
            "change that.",
            most=limit,
        )
    return _("The latest waits to be sent.")


def test_words(record: Delivery | None, *, channel: str, seconds: float) -> tuple[bool, str]:
    """Return whether a test has arrived, and what to say of it."""
    if record is not None and record.sent_at is not None:
        if channel == "email":
            return True, _("The test was sent. The mail server took it.")
        return True, _("The test was sent. The webhook's server took it.")
    if record is None or record.next_try_at is None:
        return False, _("The test was not sent. {error}", error=record.error if record else _("It was deleted."))
    return False, (
        _(
            "The test was not sent within {seconds:.0f} seconds. Either no controller runs, or it is busy, or the mail server is slow; "
            "below stands what becomes of it.",
            seconds=seconds,
        )
        if channel == "email"
        else _(
            "The test was not sent within {seconds:.0f} seconds. Either no controller runs, or it is busy; "
            "below stands what becomes of it.",
            seconds=seconds,
        )
    )
