"""A database in trouble is said once a minute, however many executions run into it."""

import logging
from collections.abc import Callable

from grid.databasetrouble import trouble_of

logger = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0


class Troubles:
    """What goes wrong with the database while an execution is looked at is no matter of that execution."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._said_at = float("-inf")
        self._met_at: float | None = None

    def are_why(self, error: Exception) -> bool:
        """Whether the error is the database's; it is then said, unless it was a moment ago."""
        trouble = trouble_of(error)
        if trouble is None:
            return False
        now = self._met_at = self._monotonic()
        if now - self._said_at >= _EVERY_SECONDS:
            self._said_at = now
            logger.error("%s All is tried again until it works. reason=%s", trouble.value, error)
        return True

    def tell_if_over(self) -> None:
        """To be called now and then while all goes well; what failed is tried again sooner than it says so."""
        if self._met_at is not None and self._monotonic() - self._met_at >= _EVERY_SECONDS:
            self._met_at, self._said_at = None, float("-inf")
            logger.info("the database has been well again for a minute")
