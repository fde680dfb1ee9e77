"""One line for each record, and no traceback for what a client did wrong.

Django, channels and uvicorn write what a client sent into their lines, whole; and Django adds a traceback to what it refuses.
"""

import logging

from grid.databasetrouble import trouble_of
from grid.edge.text import cleaned

_LONGEST_LINE = 4000


class LineFormatter(logging.Formatter):
    """A traceback of our own faults still follows its line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 # logging's name
        return cleaned(super().formatMessage(record).rstrip(), _LONGEST_LINE)


class ClientFaults(logging.Filter):
    """Says why in the line itself: of a malformed request Django's own line names only the path."""

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
    """A database that is full, busy or away is told in the line itself: where in our code it was noticed says nothing."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if trouble_of(error) is not None:
            record.msg = f"{record.getMessage()} reason={cleaned(str(error))}"
            record.args, record.exc_info, record.exc_text = (), None, None
        return True
