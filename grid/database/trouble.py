"""Recognizes errors of a database that is full, read-only, busy or away, which are no bugs of ours.

The driver's own error tells, which Django keeps as the cause: SQLite's by name, PostgreSQL's by SQLSTATE.
"""

import logging
from collections.abc import Callable
from enum import Enum

from grid.core.translation import gettext as _

logger = logging.getLogger(__name__)

_SAID_EVERY_SECONDS = 60.0


class DatabaseTrouble(Enum):
    """A kind of trouble; the value is a sentence that also says what to do."""

    FULL = _("The disk of the database is full: nothing was saved. An operator has to make room.")
    READ_ONLY = _("The database is read-only: nothing was saved. An operator has to make it writable again.")
    BUSY = _("The database is busy: nothing was saved. Try again in a minute.")
    AWAY = _(
        "The database does not answer: nothing was saved. Try again in a minute; if that does not help, tell "
        "an operator."
    )


# By the beginning of a name: SQLite appends details. SQLITE_ERROR, a wrong statement, is a bug of ours.
_SQLITE = {
    DatabaseTrouble.FULL: ("SQLITE_FULL",),
    DatabaseTrouble.READ_ONLY: ("SQLITE_READONLY",),
    DatabaseTrouble.BUSY: ("SQLITE_BUSY", "SQLITE_LOCKED"),
    DatabaseTrouble.AWAY: ("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_CORRUPT", "SQLITE_NOTADB"),
}
# By the beginning of a state, the longer first: https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL = {
    DatabaseTrouble.FULL: ("53100",),
    DatabaseTrouble.READ_ONLY: ("25006",),
    # 57014 was cancelled: it took longer than STATEMENT_SECONDS or the server allows; 40 is a deadlock, or another transaction came first.
    DatabaseTrouble.BUSY: ("55P03", "57014", "40", "53"),
    DatabaseTrouble.AWAY: ("08", "57P", "58", "XX001"),
}


def trouble_of(error: BaseException | None) -> DatabaseTrouble | None:
    """Return the trouble behind the error; None for other errors, such as our own wrong statements."""
    return None if error is None else _of_driver(error) or _of_driver(error.__cause__)


def _of_driver(error: BaseException | None) -> DatabaseTrouble | None:
    if name := getattr(error, "sqlite_errorname", ""):
        return next((trouble for trouble, starts in _SQLITE.items() if name.startswith(starts)), None)
    kind = type(error)
    if kind.__module__.partition(".")[0] != "psycopg":
        return None
    if state := getattr(error, "sqlstate", None):
        return next((trouble for trouble, starts in _POSTGRESQL.items() if state.startswith(starts)), None)
    # An error without a state is the connection's: never made, lost, or closed by either side.
    is_lost = kind.__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
    return DatabaseTrouble.AWAY if is_lost else None


class TroubleLog:
    """Logs a database's trouble at most once a minute, however many callers meet it, whatever they were about to write."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._said_at = float("-inf")
        self._met_at: float | None = None

    def handles(self, error: Exception) -> bool:
        """Return True when the error is the database's, and log it unless that was done within the last minute."""
        trouble = trouble_of(error)
        if trouble is None:
            return False
        now = self._met_at = self._monotonic()
        if now - self._said_at >= _SAID_EVERY_SECONDS:
            self._said_at = now
            logger.error("%s All is tried again until it works. reason=%s", trouble.value, error)
        return True

    def tell_if_over(self) -> None:
        """Log the recovery after a minute without trouble; called periodically while everything succeeds."""
        if self._met_at is not None and self._monotonic() - self._met_at >= _SAID_EVERY_SECONDS:
            self._met_at, self._said_at = None, float("-inf")
            logger.info("the database has been well again for a minute")
