"""What a line of log is about beyond its words: the request, the person who asks, and the execution that are being worked on.

It follows tasks and threads, as context variables do.
"""

import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from grid.core.regexes import Expression

# Others' ids are taken over only where they cannot be mistaken for anything else in a line, and are no longer than useful.
_WELL_FORMED = Expression(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
_request: ContextVar[str] = ContextVar("request", default="")
_execution: ContextVar[str] = ContextVar("execution", default="")
# Who asks is known only on the way inwards, in a task or thread whose context the outer lines do not see: so it is a box that all share.
_user: ContextVar[list[str] | None] = ContextVar("user", default=None)
# Only our own become verbose: libraries' would say what must not be in a log, such as the values in statements to the database.
LOGGERS = ("grid", "dashboard")


def current_request() -> str:
    """Return the id of the request that is being answered; "" outside of one."""
    return _request.get()


def subjects() -> Mapping[str, str]:
    """Return what is being worked on, by the names that lines of log have for it."""
    ids = {"request": _request.get(), "user": "".join(_user.get() or ()), "execution": _execution.get()}
    return {name: id for name, id in ids.items() if id}


@contextmanager
def of_request(given: str = "") -> Iterator[str]:
    """Say that what follows belongs to one request, and yield its id: the one `given` if it is well formed, else a new one."""
    id = given if given and _WELL_FORMED.fullmatch(given) else secrets.token_hex(8)
    token, user_token = _request.set(id), _user.set([])
    try:
        yield id
    finally:
        _request.reset(token)
        _user.reset(user_token)


def say_user(username: str) -> None:
    """Say whose the request is, once that is proved; outside of a request nothing is said."""
    if (box := _user.get()) is not None:
        box[:] = [username]


@contextmanager
def of_execution(id: str) -> Iterator[None]:
    """Say that what follows is work on one execution."""
    token = _execution.set(id)
    try:
        yield
    finally:
        _execution.reset(token)


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
        about, words = subjects().get("execution"), record.getMessage() if _now.executions else ""
        ids = (id for id, end in _now.executions.items() if record.created < end)
        return any(about == id or f"execution={id}" in words for id in ids)
