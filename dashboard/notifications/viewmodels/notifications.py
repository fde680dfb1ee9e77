"""Notifications: the bell of the frame, the list, and the choices that somebody has; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from dashboard.shell.viewmodels.listing import EmptyState, Paging
from dashboard.shell.viewmodels.live import Fragment, ViewModel
from grid.core.translation import gettext as _
from grid.core.wording import plural

_MOST_SHOWN = 99
BELLS = ("bell", "bell-small")  # in the sidebar, and in the bar of narrow screens
_TOAST = "toast"
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

    count: str = ""
    words: str = _("Notifications")
    is_small: bool = False


class ToastView(ViewModel, frozen=True, gc=False):
    """A notification that has just come; by its id a browser tells it from the one before."""

    id: int
    word: str
    severity: str
    title: str
    path: str


@dataclass(frozen=True, slots=True)
class NotificationRecord:
    """A stored notification."""

    id: int
    event: str
    title: str
    sentence: str
    path: str
    at: datetime
    is_unread: bool


class NotificationRow(ViewModel, frozen=True, gc=False):
    """A notification as the list shows it."""

    id: int
    word: str
    severity: str
    title: str
    sentence: str
    path: str
    at: datetime
    is_unread: bool


class UnreadView(ViewModel, frozen=True, gc=False):
    """How many are unread, in words; `count` is 0 when there is nothing to mark as read."""

    count: int
    sentence: str


@dataclass(frozen=True, slots=True)
class ChannelBox:
    """The box of one channel for one event; `name` is the form field's."""

    name: str
    label: str
    is_checked: bool


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    title: str
    boxes: Sequence[ChannelBox]


def bell_view(unread: int, *, is_small: bool = False) -> BellView:
    if not unread:
        return BellView(is_small=is_small)
    count = str(unread) if unread <= _MOST_SHOWN else f"{_MOST_SHOWN}+"
    return BellView(count, _("Notifications, {unread} unread", unread=unread), is_small)


def bell_fragments(unread: int) -> list[Fragment]:
    return [
        Fragment(id, "notifications/fragments/bell.html", bell_view(unread, is_small=id == "bell-small"))
        for id in BELLS
    ]


def toast_fragment(latest: NotificationRecord) -> Fragment:
    word, severity = event_word(latest.event)
    return Fragment(
        _TOAST, "notifications/fragments/toast.html", ToastView(latest.id, word, severity, latest.title, latest.path)
    )


def event_word(event: str) -> tuple[str, str]:
    """Return the word of an event and how serious it is."""
    return _WORDS.get(event, (event.replace("_", " ").capitalize(), "neutral"))


def notification_fragments(
    records: Sequence[NotificationRecord], unread: int, *, page: int, page_length: int
) -> list[Fragment]:
    """Return a page of the list; one record more than `page_length` says that there are older ones."""
    told = UnreadView(unread, unread_words(unread))
    rows = [
        Fragment(f"notification-{record.id}", "notifications/fragments/notification.html", _row(record), REGION)
        for record in records[:page_length]
    ]
    if not rows:
        rows = [Fragment("notifications-none", "shell/fragments/empty_item.html", _NONE, REGION)]
    previous = f"?page={page - 1}" if page > 1 else ""
    following = f"?page={page + 1}" if len(records) > page_length else ""
    paging = Paging(_("Page {page}", page=page) if previous or following else "", previous, following)
    return [
        Fragment("notifications-lead", "notifications/fragments/notifications_lead.html", told),
        Fragment("notifications-all", "notifications/fragments/notifications_all.html", told),
        *rows,
        Fragment("notifications-paging", "shell/fragments/paging.html", paging),
    ]


def _row(record: NotificationRecord) -> NotificationRow:
    word, severity = event_word(record.event)
    return NotificationRow(
        record.id, word, severity, record.title, record.sentence, record.path, record.at, record.is_unread
    )


def unread_words(unread: int) -> str:
    return f"{plural(unread, 'unread notification', 'unread notifications')}." if unread else _("Everything is read.")
