"""Logs each record in one line, without a traceback for a client's mistake.

Django, channels and uvicorn log what a client sent without shortening it, and Django adds a traceback to each refusal.
"""

import logging

from grid.databasetrouble import trouble_of
from grid.edge.text import cleaned

_LONGEST_LINE = 4000


class LineFormatter(logging.Formatter):
    """Formats a record as one cleaned line; a traceback of our own errors still follows it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 # logging's name
        return cleaned(super().formatMessage(record).rstrip(), _LONGEST_LINE)


class ClientFaults(logging.Filter):
    """Appends the reason to the line of a malformed request: Django's own line names only the path."""

    def filter(self, record: logging.LogRecord) -> bool:
        status = getattr(record, "status_code", None)
        if record.exc_info and isinstance(status, int) and status < 500:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            said = record.getMessage()
            reason = str(record.exc_info[1])
            request = getattr(record, "request", None)
            path = "" if request is None or request.path in said else f" path={cleaned(request.path)}"
            record.msg = said + path + ("" if reason in said else f" reason={cleaned(reason)}")
            record.args, record.exc_info, record.exc_text = (), None, None
        return True


class DatabaseTroubles(logging.Filter):
    """Replaces the traceback of a database that is full, busy or away by a sentence: where our code noticed it does not matter."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if trouble_of(error) is not None:
            record.msg = f"{record.getMessage()} reason={cleaned(str(error))}"
            record.args, record.exc_info, record.exc_text = (), None, None
        return True
