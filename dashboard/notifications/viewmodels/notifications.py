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
    """How many are unread; with none there is nothing to mark as read."""

    count: int

    @property
    def sentence(self) -> str:
        words = plural(self.count, "unread notification", "unread notifications")
        return f"{words}." if self.count else _("Everything is read.")


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


def bell_fragments(unread: int) -> list[Fragment]:
    template = "notifications/fragments/bell.html"
    return [Fragment(id, template, BellView(unread, is_small=id == "bell-small")) for id in BELLS]


def toast_fragment(latest: NotificationRecord) -> Fragment:
    return Fragment("toast", "notifications/fragments/toast.html", latest)


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
