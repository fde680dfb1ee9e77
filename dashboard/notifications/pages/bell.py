"""The bell of a live page: one person's notifications, read again when the change feed tells of one, and never otherwise."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Sequence

from django.db import DatabaseError

from dashboard.notifications.records import latest_unread, unread_count
from dashboard.notifications.viewmodels.notifications import NotificationRecord, bell_fragments, toast_fragment
from dashboard.shell.access import Viewer
from dashboard.shell.viewmodels.live import PageUpdate
from grid.database import threads as database
from grid.runtime import Runtime
from grid.runtime.written import notified

logger = logging.getLogger(__name__)

REST_SECONDS = 1.0  # between two readings: many executions may fail at once
RETRY_SECONDS = 5.0
SPREAD_SECONDS = 10.0  # over which pages read when the feed cannot say whose notifications changed


async def bell_updates(runtime: Runtime, viewer: Viewer) -> AsyncIterator[Sequence[PageUpdate]]:
    """Yield what changes the bell, and a toast for a notification that has come since; the page's first paint shows the number before."""
    user_id = viewer.id
    mine, everybodys = notified(str(user_id)), notified()
    shown, is_told = (0, 0), False  # how many are unread, and the highest id so far
    with runtime.hub.subscribe((mine, everybodys)) as subscription:
        while True:
            try:
                unread, latest = await database.background.run(_read, user_id)
            except DatabaseError:
                logger.warning("notifications cannot be read, trying again user=%s", user_id)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            was, shown = shown, (unread, max(latest.id if latest else 0, shown[1]))
            if was != shown:
                fragments = bell_fragments(unread)
                if latest is not None and is_told and latest.id > was[1]:
                    fragments.append(toast_fragment(latest))
                yield [PageUpdate("replace", fragment.id, (fragment,)) for fragment in fragments]
            is_told = True
            await asyncio.sleep(REST_SECONDS)
            if mine not in await subscription.changed():
                # Thousands of pages may hear this at the same moment.
                await asyncio.sleep(random.random() * SPREAD_SECONDS)


def _read(user_id: int) -> tuple[int, NotificationRecord | None]:
    return unread_count(user_id), latest_unread(user_id)
