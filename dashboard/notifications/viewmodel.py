"""Notifications: the bell of the frame, the list, what somebody has chosen, and the channels out of the dashboard; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from dashboard.shell.viewmodels.listing import EmptyState, Paging
from dashboard.shell.viewmodels.live import Fragment, ViewModel
from grid.core.translation import gettext as _
from grid.core.wording import duration, plural
from grid.models import Delivery

_MOST_SHOWN = 99
BELLS = ("bell", "bell-small")  # in the sidebar, and in the bar of narrow screens
REGION = "notifications"
_NONE = EmptyState(
    _("No notifications."),
    _("When one of your executions fails, or is about to be stopped, a notification appears here."),
)
# By event: the word of the list, and how serious it is.
_WORDS: Mapping[str, tuple[str, Literal["ok", "problem", "wait", "neutral"]]] = {
    "started": (_("Running"), "ok"),
    "succeeded": (_("Succeeded"), "neutral"),
    "failed": (_("Failed"), "problem"),
    "stopping_soon": (_("Stops soon"), "wait"),
    "stopped": (_("Stopped"), "neutral"),
    "schedule_paused": (_("Schedule paused"), "wait"),
    "files_not_saved": (_("Files not saved"), "problem"),
    "budget": (_("Budget"), "wait"),
    "maintenance": (_("Maintenance"), "wait"),
    "message": (_("Message"), "wait"),
    "alert": (_("Alert"), "problem"),
    "queue_position": (_("In the queue"), "neutral"),
    "cpu_contention": (_("Short of CPU"), "wait"),
}


class BellView(ViewModel, frozen=True, gc=False):
    """The bell: how many notifications are unread. `is_small` is that of narrow screens, which has no words."""

    unread: int
    is_small: bool = False

    @property
    def count(self) -> str:
        """The number as the bell has room for it; "" for none."""
        return str(self.unread or "") if self.unread <= _MOST_SHOWN else f"{_MOST_SHOWN}+"

    @property
    def words(self) -> str:
        return _("Notifications, {unread} unread", unread=self.unread) if self.unread else _("Notifications")


class NotificationRecord(ViewModel, frozen=True, gc=False):
    """A stored notification, as a row of the list or as a toast; by its id a browser tells a toast from the one before."""

    id: int
    event: str
    title: str
    sentence: str
    path: str
    at: datetime
    is_unread: bool

    @property
    def word(self) -> str:
        return _WORDS[self.event][0] if self.event in _WORDS else self.event.replace("_", " ").capitalize()

    @property
    def severity(self) -> str:
        return _WORDS[self.event][1] if self.event in _WORDS else "neutral"


class UnreadView(ViewModel, frozen=True, gc=False):
    count: int

    @property
    def sentence(self) -> str:
        words = plural(self.count, "unread notification", "unread notifications")
        return f"{words}." if self.count else _("Everything is read.")


@dataclass(frozen=True, slots=True)
class ChannelBox:
    name: str
    label: str
    is_checked: bool


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    title: str
    boxes: Sequence[ChannelBox]


def bell_fragments(unread: int) -> list[Fragment]:
    template = "notifications/fragments/bell.html"
    return [Fragment(id, template, BellView(unread, is_small=id == "bell-small")) for id in BELLS]


def notification_fragments(
    records: Sequence[NotificationRecord], unread: int, *, page: int, page_length: int
) -> list[Fragment]:
    """Return a page of the list; one record more than `page_length` says that there are older ones."""
    unread_view = UnreadView(unread)
    rows = [
        Fragment(f"notification-{record.id}", "notifications/fragments/notification.html", record, REGION)
        for record in records[:page_length]
    ]
    if not rows:
        rows = [Fragment("notifications-none", "shell/fragments/empty_item.html", _NONE, REGION)]
    previous = f"?page={page - 1}" if page > 1 else ""
    following = f"?page={page + 1}" if len(records) > page_length else ""
    paging = Paging(_("Page {page}", page=page) if previous or following else "", previous, following)
    return [
        Fragment("notifications-lead", "notifications/fragments/notifications_lead.html", unread_view),
        Fragment("notifications-all", "notifications/fragments/notifications_all.html", unread_view),
        *rows,
        Fragment("notifications-paging", "shell/fragments/paging.html", paging),
    ]


NO_SERVER = _("This installation sends no e-mail: an admin has to name a mail server.")
NO_ADDRESS = _("Your account has no e-mail address. Add one to your profile above.")
NO_WEBHOOK = _("Nothing is posted anywhere.")


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
    stays = _("Until then {address} stays in use.") if present else _("Until then no e-mail is sent to you.")
    left, stays = duration(until - now), stays.format(address=present)
    sentence = _("Open the link in the letter to it within {duration}. {stays}", duration=left, stays=stays)
    trouble = latest_words(letter, now) if letter is not None and letter.sent_at is None and letter.error else ""
    return PendingAddress(address, sentence, trouble)


def latest_words(delivery: Delivery, now: datetime, *, limit: int = 0) -> str:
    """Return what became of a message so far; `limit` is how many a person gets within an hour, 0 while it is not reached."""
    if delivery.sent_at is not None:
        return _("The latest was sent {duration} ago.", duration=duration(now - delivery.sent_at))
    if delivery.next_try_at is None:
        return _("The latest was given up. {error}", error=delivery.error)
    if delivery.error:
        wait = duration(delivery.next_try_at - now)
        return _("The latest was not sent yet. {error} It is tried again in {wait}.", error=delivery.error, wait=wait)
    if limit:
        return _(
            "The latest waits: {most:,} were sent to you within an hour, and no more may be. It is sent later by itself; an admin can "
            "change that.",
            most=limit,
        )
    return _("The latest waits to be sent.")


def test_words(record: Delivery | None, *, channel: str, seconds: float) -> tuple[bool, str]:
    if record is not None and record.sent_at is not None:
        if channel == "email":
            return True, _("The test was sent. The mail server took it.")
        return True, _("The test was sent. The webhook's server took it.")
    if record is None or record.next_try_at is None:
        return False, _("The test was not sent. {error}", error=record.error if record else _("It was deleted."))
    late = _("The test was not sent within {seconds:.0f} seconds. Either no controller runs, or it is busy{or_slow}; ")
    or_slow = _(", or the mail server is slow") if channel == "email" else ""
    return False, late.format(seconds=seconds, or_slow=or_slow) + _("below stands what becomes of it.")
