"""One person's notifications on live pages, the list and the bell: read again when the change feed tells of one, and never otherwise."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError
from django.http import QueryDict

from dashboard.notifications import viewmodel
from dashboard.notifications.records import latest_unread, notifications, unread_count
from dashboard.shell.access import Viewer
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.live import Fragment, PageUpdate
from grid.database import threads as database
from grid.kube.hub import Topic
from grid.runtime import Runtime
from grid.runtime.written import notified

logger = logging.getLogger(__name__)

REST_SECONDS = 1.0  # between two readings: many executions may fail at once
RETRY_SECONDS = 5.0
SPREAD_SECONDS = 10.0  # over which pages read when the feed cannot say whose notifications changed
PAGE_LENGTH = 50
_MOST_PAGES = 10_000


async def bell_updates(runtime: Runtime, viewer: Viewer) -> AsyncIterator[Sequence[PageUpdate]]:
    """Yield what changes the bell, and a toast for a notification that has come since; the page's first paint shows the number before."""
    user_id = viewer.id
    mine, everybodys = notified(str(user_id)), notified()
    shown, is_told = (0, 0), False  # how many are unread, and the highest id so far
    with runtime.hub.subscribe((mine, everybodys)) as subscription:
        while True:
            try:
                unread, latest = await database.background.run(lambda: (unread_count(user_id), latest_unread(user_id)))
            except DatabaseError:
                logger.warning("notifications cannot be read, trying again user=%s", user_id)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            was, shown = shown, (unread, max(latest.id if latest else 0, shown[1]))
            if was != shown:
                fragments = viewmodel.bell_fragments(unread)
                if latest is not None and is_told and latest.id > was[1]:
                    fragments.append(Fragment("toast", "notifications/fragments/toast.html", latest))
                yield [PageUpdate("replace", fragment.id, (fragment,)) for fragment in fragments]
            is_told = True
            await asyncio.sleep(REST_SECONDS)
            if mine not in await subscription.changed():
                # Thousands of pages may hear this at the same moment.
                await asyncio.sleep(random.random() * SPREAD_SECONDS)


@dataclass(frozen=True, slots=True)
class NotificationsRead:
    records: Sequence[viewmodel.NotificationRecord]
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
    regions = frozenset({viewmodel.REGION})
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
        return viewmodel.notification_fragments(facts.records, facts.unread, page=view, page_length=PAGE_LENGTH)


NOTIFICATIONS = NotificationsPage()
