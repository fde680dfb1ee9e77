"""The channels by which somebody is told outside of the dashboard: where they lead, and what became of the latest message; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from grid.wording import duration

NO_SERVER = "This installation sends no e-mail: an admin has to name a mail server."
NO_ADDRESS = "Your account has no e-mail address. Add one to your profile above."
NO_WEBHOOK = "Nothing is posted anywhere."
_TITLES = {"email": "E-mail", "webhook": "Webhook"}


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """What became of a message so far: `next_try_at` is None once it was sent or given up."""

    at: datetime
    tries: int = 0
    next_try_at: datetime | None = None
    sent_at: datetime | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel of the account's page; `where` says where it leads or why nowhere, `latest` what became of the latest message."""

    name: str
    title: str
    where: str
    is_set_up: bool
    latest: str = ""


def channel_views(
    *, sends_mail: bool, address: str, url: str, latest: Mapping[str, DeliveryRecord], now: datetime
) -> list[ChannelView]:
    email = NO_SERVER if not sends_mail else f"To {address}." if address else NO_ADDRESS
    return [
        _view("email", email, sends_mail and bool(address), latest, now),
        _view("webhook", f"Posted to {url}." if url else NO_WEBHOOK, bool(url), latest, now),
    ]


def _view(name: str, where: str, is_set_up: bool, latest: Mapping[str, DeliveryRecord], now: datetime) -> ChannelView:
    record = latest.get(name) if is_set_up else None
    return ChannelView(name, _TITLES[name], where, is_set_up, latest_words(record, now) if record else "")


def latest_words(record: DeliveryRecord, now: datetime) -> str:
    if record.sent_at is not None:
        return f"The latest was sent {duration(now - record.sent_at)} ago."
    if record.next_try_at is None:
        return f"The latest was given up. {record.error}"
    if record.error:
        return f"The latest was not sent yet. {record.error} It is tried again in {duration(record.next_try_at - now)}."
    return "The latest waits to be sent."


def test_words(record: DeliveryRecord | None, *, channel: str, seconds: float) -> tuple[bool, str]:
    """Return whether a test has arrived, and what to say of it."""
    if record is not None and record.sent_at is not None:
        taken = "The mail server took it" if channel == "email" else "The webhook's server took it"
        return True, f"The test was sent. {taken}."
    if record is None or record.next_try_at is None:
        return False, f"The test was not sent. {record.error if record else 'It was deleted.'}"
    why = (
        "no controller runs, or it is busy, or the mail server is slow"
        if channel == "email"
        else "no controller runs, or it is busy"
    )
    return False, (
        f"The test was not sent within {seconds:.0f} seconds. Either {why}; below stands what becomes of it."
    )
