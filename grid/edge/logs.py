"""Logs each record in one line, as text or as JSON, without a traceback for a client's mistake.

Django, channels and uvicorn log what a client sent without shortening it, and Django adds a traceback to each refusal.
"""

import json
import logging
from datetime import UTC, datetime

from grid.core.regexes import RepeatedExpression
from grid.database.trouble import trouble_of
from grid.edge.refusals import cleaned
from grid.observability.logcontext import subjects

_LONGEST_LINE = 4000
_LONGEST_TRACEBACK = 20_000
# What our lines say as name=value; a reason is a sentence and goes on until the next name.
_NAME, _SENTENCES = RepeatedExpression(r"(?:^|\s)([a-z_]+)="), ("reason", "error")
_OWN = frozenset({"time", "level", "logger", "message", "exception"})


class LineFormatter(logging.Formatter):
    """Formats a record as one cleaned line with what it is about; a traceback of our own errors still follows it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 # logging's name
        line = super().formatMessage(record).rstrip()
        # What a message says of itself is no proof: a path may hold user=somebody-else.
        words = line.split()
        about = [f" {name}={cleaned(id)}" for name, id in subjects().items() if f"{name}={id}" not in words]
        return "".join([cleaned(line, _LONGEST_LINE), *about])


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object in one line, for whatever collects logs: time in UTC, level, logger and message; the request,
    user and execution that it is about; what the message says as name=value; and a traceback as `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage().rstrip()
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, str] = {"time": at, "level": record.levelname, "logger": record.name}
        line["message"] = cleaned(message, _LONGEST_LINE)
        fields = _fields(message[:_LONGEST_LINE])
        line |= {name: cleaned(value, _LONGEST_LINE) for name, value in fields if name not in _OWN}
        line |= subjects()  # last: what a message says of itself is no proof
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)[-_LONGEST_TRACEBACK:]
        return json.dumps(line, ensure_ascii=False)


def _fields(message: str) -> list[tuple[str, str]]:
    places = list(_NAME.finditer(message))
    ends = [*(place.start() for place in places), len(message)][1:]
    texts = [(place[1], message[place.end() : end]) for place, end in zip(places, ends, strict=True)]
    return [
        (name, text if name in _SENTENCES else text.split(maxsplit=1)[0])
        for name, text in texts
        if text.strip() and not name.startswith("_") and (name in _SENTENCES or not text[0].isspace())
    ]


class ClientFaults(logging.Filter):
    """Appends the reason to the line of a malformed request: Django's own line names only the path."""

    def filter(self, record: logging.LogRecord) -> bool:
        status = getattr(record, "status_code", None)
        if record.exc_info and isinstance(status, int) and status < 500:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            line = record.getMessage()
            reason = str(record.exc_info[1])
            request = getattr(record, "request", None)
            path = "" if request is None or request.path in line else f" path={cleaned(request.path)}"
            record.msg = line + path + ("" if reason in line else f" reason={cleaned(reason)}")
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
