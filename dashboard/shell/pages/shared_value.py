"""What open pages show beside their own content and nothing wakes them for: read once for all pages of a process."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from django.db import DatabaseError
from django.utils import timezone

from grid.database import threads as database

logger = logging.getLogger(__name__)

T = TypeVar("T")


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
