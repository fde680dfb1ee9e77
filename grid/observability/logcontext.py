"""What a line of log is about beyond its words: the request, the person who asks, and the execution that are being worked on.

It follows tasks and threads, as context variables do.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from grid.core.regexes import Expression

# Others' ids are taken over only where they cannot be mistaken for anything else in a line, and are no longer than useful.
_WELL_FORMED = Expression(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
_request: ContextVar[str] = ContextVar("request", default="")
_execution: ContextVar[str] = ContextVar("execution", default="")
# Who asks is known only on the way inwards, in a task or thread whose context the outer lines do not see: so it is a box that all share.
_user: ContextVar[list[str] | None] = ContextVar("user", default=None)


def current_request() -> str:
    """Return the id of the request that is being answered; "" outside of one."""
    return _request.get()


def subjects() -> Mapping[str, str]:
    """Return what is being worked on, by the names that lines of log have for it."""
    ids = {"request": _request.get(), "user": "".join(_user.get() or ()), "execution": _execution.get()}
    return {name: id for name, id in ids.items() if id}


@contextmanager
def of_request(given: str = "") -> Iterator[str]:
    """Say that what follows belongs to one request, and yield its id: the one `given` by whoever asks if it is well formed, else a new
    one."""
    id = given if _WELL_FORMED.fullmatch(given) else secrets.token_hex(8)
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
