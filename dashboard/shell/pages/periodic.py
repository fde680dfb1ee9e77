"""A value for pages that is read again now and then, beside the pages: one that takes long, or fails, holds no page up."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Generic, TypeVar

from django.db import DatabaseError
from django.utils import timezone

from grid.database import threads as database

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_SECONDS = 1.0  # for which the first question waits


class PeriodicRead(Generic[T]):
    """Used on one event loop at a time. `silent_since` is when a reading began that has not ended within `patience` seconds."""

    def __init__(
        self, read: Callable[[], Awaitable[T]], *, clock: Callable[[], datetime], patience: float = 3.0
    ) -> None:
        self._read = read
        self._clock = clock
        self._patience = patience
        self._value: T | None = None
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._began = float("-inf")
        self._began_at: datetime | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def value(self, within: float, *, waits: bool = False, patience: float = FIRST_SECONDS) -> T | None:
        """Return the value, and begin to read it again when it is older than `within` seconds. Wait for the first one for `patience`
        seconds, and return None if it has not come by then. With `waits`, only who begins a reading waits, for each."""
        before = self._reading
        self.begin(within)
        if self._reading is not None and (self._reading is not before if waits else self._value is None):
            await asyncio.wait({self._reading}, timeout=patience)
        return self._value

    def begin(self, within: float) -> T | None:
        """Return the value as it is, None before the first, and begin to read it again when it is older than `within` seconds."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the former one's clock may be another
            self._loop, self._reading, self._read_at = loop, None, float("-inf")
        if self._reading is None and not 0 <= loop.time() - self._read_at < within:
            self._began, self._began_at = loop.time(), self._clock()
            self._reading = loop.create_task(self._read_once(), name="periodic read")
        return self._value

    @property
    def silent_since(self) -> datetime | None:
        if self._reading is None or self._loop is None or self._loop.time() - self._began < self._patience:
            return None
        return self._began_at

    def forget(self) -> None:
        """Have the next question read it again, and wait for that."""
        self._value, self._reading, self._read_at = None, None, float("-inf")

    async def _read_once(self) -> None:
        value = self._value
        try:
            value = await self._read()
        except Exception:
            logger.exception("a periodic read failed, trying again")
        finally:
            if self._reading is asyncio.current_task():  # else it is forgotten
                self._value, self._reading = value, None
                self._read_at = asyncio.get_running_loop().time()


class Board(Generic[T]):
    """What `read` returned last, `nothing` before; used on one event loop at a time. `what` names it in the log."""

    def __init__(self, what: str, read: Callable[[datetime], T], nothing: T) -> None:
        self._what, self._read, self._value = what, read, nothing
        self._read_at = float("-inf")

    async def value(self, within: float) -> T:
        """Return it, read at most `within` seconds ago, or what was read before while the database does not answer."""
        now = asyncio.get_running_loop().time()
        if not 0 <= now - self._read_at < within:
            self._read_at = now  # other pages do not ask meanwhile
            try:
                self._value = await database.background.run(self._read, timezone.now())
            except DatabaseError:
                logger.warning("%s cannot be read, trying again", self._what)
        return self._value
