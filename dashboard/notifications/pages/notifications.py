"""The user's own notifications, live: read again when the change feed tells of one of them."""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import QueryDict

from dashboard.notifications.records import notifications, unread_count
from dashboard.notifications.viewmodels.notifications import REGION, NotificationRecord, notification_fragments
from dashboard.shell.access import Viewer
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.live import Fragment
from grid.database import threads as database
from grid.kube.hub import Topic
from grid.runtime import Runtime
from grid.runtime.written import notified

PAGE_LENGTH = 50
_MOST_PAGES = 10_000


@dataclass(frozen=True, slots=True)
class NotificationsRead:
    """A page of notifications, and one more when there are older ones."""

    records: Sequence[NotificationRecord]
    unread: int


def page_number(text: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) < 6
    return min(max(1, int(text)), _MOST_PAGES) if is_number else 1


def _read(user_id: int, page: int) -> NotificationsRead:
    records = notifications(user_id, start=(page - 1) * PAGE_LENGTH, at_most=PAGE_LENGTH + 1)
    return NotificationsRead(records, unread_count(user_id))


class NotificationsPage(LivePage[int, NotificationsRead]):
    """The view is the number of the page, 1 for the newest."""

    name = "notifications"
    regions = frozenset({REGION})
    rest_seconds = 1.0
    tick_seconds = 20.0  # without a change feed, nothing else tells of one

    def view(self, query: QueryDict) -> int:
        return page_number(str(query.get("page", "")))

    def allowed(self, runtime: Runtime, viewer: Viewer, view: int) -> bool:
        return True

    def audience(self, viewer: Viewer) -> Hashable:
        return viewer.id

    async def read(self, runtime: Runtime, viewer: Viewer, view: int) -> NotificationsRead:
        return await database.pages.run(_read, viewer.id, view)

    def topics(self, runtime: Runtime, viewer: Viewer, view: int, facts: NotificationsRead) -> Collection[Topic]:
        return {notified(str(viewer.id)), notified()}

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: int, facts: NotificationsRead, now: datetime
    ) -> Sequence[Fragment]:
        return notification_fragments(facts.records, facts.unread, page=view, page_length=PAGE_LENGTH)


NOTIFICATIONS = NotificationsPage()
