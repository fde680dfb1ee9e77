"""Which lines at DEBUG this process logs for a time: all of our own code, or those about some executions. It ends by itself.

Only our own loggers become verbose. Libraries' would say what must not be in a log, such as the values in statements to the database.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from grid.observability.logcontext import subjects

LOGGERS = ("grid", "dashboard")


@dataclass(slots=True)
class _Verbosity:
    """When it ends, in seconds since the epoch: for all lines, and for those about an execution by its id."""

    until: float = 0.0
    executions: Mapping[str, float] = field(default_factory=dict)


_now = _Verbosity()


def apply(until: float, executions: Mapping[str, float], *, now: float) -> None:
    """Log at DEBUG until then, and about each execution until its time; nothing for times that have passed."""
    _now.until, _now.executions = until, {id: end for id, end in executions.items() if end > now}
    level = logging.DEBUG if until > now or _now.executions else logging.NOTSET
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if logger.level != level:
            logger.setLevel(level)


class Verbosity(logging.Filter):
    """Lets lines through from the root logger's level on, and below it those that are wanted now."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.getLogger().level or record.created < _now.until:
            return True
        return any(record.created < end and _is_about(id, record) for id, end in _now.executions.items())


def _is_about(id: str, record: logging.LogRecord) -> bool:
    return subjects().get("execution") == id or f"execution={id}" in record.getMessage()
