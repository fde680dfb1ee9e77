"""The announcements of open pages: read for all pages of a process together, twice a minute, because they begin and end by the clock."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

from django.utils import timezone

from dashboard.announcements.records import shown_announcements
from dashboard.announcements.viewmodel import banners_fragment
from dashboard.shell.access import Viewer
from dashboard.shell.pages.periodic import Board
from dashboard.shell.viewmodels.live import PageUpdate
from grid.models import Announcement
from grid.runtime import Runtime

LOOK_SECONDS = 30.0
KEPT_SECONDS = 15.0  # what one page has read serves all others meanwhile
SPREAD_SECONDS = 5.0

_board = Board[Sequence[tuple[Announcement, set[int]]]]("announcements", shown_announcements, ())


async def announcement_updates(runtime: Runtime, viewer: Viewer) -> AsyncIterator[Sequence[PageUpdate]]:
    """Yield the announcements of a person's page whenever they change. The first look, half a minute after the page's first paint, yields
    them in any case: what the browser shows is not known."""
    shown = None
    while True:
        await asyncio.sleep(LOOK_SECONDS + random.random() * SPREAD_SECONDS)
        announcements = await _board.value(KEPT_SECONDS)
        fragment = banners_fragment((row for row, hidden in announcements if viewer.id not in hidden), timezone.now())
        if fragment != shown:
            shown = fragment
            yield [PageUpdate("replace", fragment.id, (fragment,))]
