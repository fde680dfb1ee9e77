"""Watches the sessions behind all live pages of this process together: four queries a second, however many pages are open."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping

from channels.db import database_sync_to_async
from django.db import DatabaseError

from dashboard.access import Viewer, viewers_of
from grid.sessions import stored_key, valid_users

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 30.0  # how long pages stay open while the database does not answer
Read = Callable[[Collection[str]], Awaitable[Mapping[str, Viewer]]]


def read_viewers(session_keys: Collection[str]) -> dict[str, Viewer]:
    """Whom each of these sessions belongs to now, by their cookies' keys; nobody for one that has ended."""
    users = valid_users({stored_key(key) for key in session_keys})
    viewers = viewers_of(users.values())
    found = ((key, users.get(stored_key(key))) for key in session_keys)
    return {key: viewers[user_id] for key, user_id in found if user_id in viewers}


_read_in_thread: Read = database_sync_to_async(read_viewers)


class SessionWatch:
    """Reads every `seconds` while somebody asks, in one task for all who do."""

    def __init__(
        self,
        read: Read = _read_in_thread,
        *,
        seconds: float = 1.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._monotonic = monotonic
        self._asked_for: Counter[str] = Counter()
        self._reading: asyncio.Task[tuple[Collection[str], Mapping[str, Viewer]]] | None = None

    async def viewer(self, session_key: str) -> Viewer | None:
        """Who that session belongs to at the next reading; None when it has ended. DatabaseError after half a minute without one."""
        self._asked_for[session_key] += 1
        try:
            while True:
                if self._reading is None or self._reading.done():
                    self._reading = asyncio.create_task(self._next_reading(), name="watch sessions")
                asked_for, found = await asyncio.shield(self._reading)
                # Who came while the database was being read was not asked for, and is not gone because of that.
                if session_key in asked_for:
                    return found.get(session_key)
        finally:
            self._asked_for[session_key] -= 1
            if not self._asked_for[session_key]:
                del self._asked_for[session_key]
            if not self._asked_for and self._reading is not None:
                self._reading.cancel()
                self._reading = None

    async def _next_reading(self) -> tuple[Collection[str], Mapping[str, Viewer]]:
        """The keys that were asked for, and whom they belong to."""
        start = self._monotonic()
        while True:
            await asyncio.sleep(self._seconds)
            try:
                asked_for = set(self._asked_for)
                return asked_for, await self._read(asked_for)
            except DatabaseError as error:
                if self._monotonic() - start > _PATIENCE_SECONDS:
                    raise
                logger.warning("sessions cannot be read, trying again error=%s", type(error).__name__)


session_watch = SessionWatch()
