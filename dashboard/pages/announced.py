"""The announcements of open pages: read for all pages of a process together, twice a minute, because they begin and end by the clock."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Sequence

from django.db import DatabaseError
from django.utils import timezone

from dashboard.announcement_records import shown_announcements
from dashboard.viewmodels.announcements import AnnouncementRecord, banners_fragment
from dashboard.viewmodels.live import PageUpdate
from grid import database

logger = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
KEPT_SECONDS = 15.0  # what one page has read serves all others meanwhile
SPREAD_SECONDS = 5.0


class AnnouncementBoard:
    """What is shown now, as read last; used on one event loop at a time."""

    def __init__(self) -> None:
        self._records: Sequence[AnnouncementRecord] = ()
        self._read_at = float("-inf")

    async def records(self) -> Sequence[AnnouncementRecord]:
        """Return what is shown, read at most `KEPT_SECONDS` ago, or what was read before while the database does not answer."""
        now = asyncio.get_running_loop().time()
        if not 0 <= now - self._read_at < KEPT_SECONDS:
            self._read_at = now  # other pages do not ask meanwhile
            try:
                self._records = await database.background.run(shown_announcements, timezone.now())
            except DatabaseError:
                logger.warning("announcements cannot be read, trying again")
        return self._records


board = AnnouncementBoard()


async def announcement_updates(
    user_id: int, read_from: AnnouncementBoard = board
) -> AsyncIterator[Sequence[PageUpdate]]:
    """Yield the announcements of a person's page whenever they change. The first look, half a minute after the page's first paint, yields
    them in any case: what the browser shows is not known."""
    shown = None
    while True:
        await asyncio.sleep(LOOK_SECONDS + random.random() * SPREAD_SECONDS)
        fragment = banners_fragment(await read_from.records(), user_id, timezone.now())
        if fragment != shown:
            shown = fragment
            yield [PageUpdate("replace", fragment.id, (fragment,))]
