"""A change feed that tells what a test puts in."""

import asyncio
from collections.abc import AsyncGenerator, Collection

from grid.database.changefeed import EVERYTHING, Change, FeedLost


class ScriptedFeed:
    """Tells what a test puts in, in a list; a string is why it is lost."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[Collection[Change] | str] = asyncio.Queue()

    async def changes(self) -> AsyncGenerator[Collection[Change]]:
        yield {EVERYTHING}
        while True:
            notice = await self.told.get()
            if isinstance(notice, str):
                raise FeedLost(notice)
            yield notice
