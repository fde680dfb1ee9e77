"""Puts logins into words: the message of a lock, the admins' list of locks, and a user's own sessions; pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import plural

_LOCKED = {
    "name at address": _("for this name from your address"),
    "address": _("from your address"),
    "name": _("for this name"),
}
_BROWSERS = (
    ("Edge", Expression(r"\bEdg[A-Za-z]*/")),
    ("Opera", Expression(r"\bOPR/")),
    ("Firefox", Expression(r"\b(Firefox|FxiOS)/")),
    ("Chrome", Expression(r"\b(Chrome|Chromium|HeadlessChrome|CriOS)/")),
    ("Safari", Expression(r"\bSafari/")),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


class LockLike(Protocol):
    """The part of `grid.accounts.lockouts.Lock` that is used here."""

    @property
    def scope(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def failures(self) -> int: ...
    @property
    def until(self) -> datetime: ...


class SessionLike(Protocol):
    """The part of a stored session that is used here."""

    @property
    def pk(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def seen_at(self) -> datetime: ...
    @property
    def address(self) -> str: ...
    @property
    def agent(self) -> str: ...


@dataclass(frozen=True, slots=True)
class LockRow:
    """A lock in words, for admins; `scope`, `name` and `address` identify the lock to end."""

    title: str
    failures: str
    until: datetime
    scope: str
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One of the user's own sessions."""

    key: str
    browser: str
    agent: str
    address: str
    since: datetime
    seen_at: datetime
    is_this: bool


def lock_sentence(scope: str, left: timedelta) -> str:
    """Return the message to a locked-out user, which does not reveal whether the account exists."""
    wait = plural(max(1, math.ceil(left.total_seconds() / 60)), "minute", "minutes")
    return _(
        "Too many wrong passwords {locked}. Try again in {wait}, or ask an admin to unlock it.",
        locked=_LOCKED[scope],
        wait=wait,
    )


def lock_rows(locks: Iterable[LockLike]) -> list[LockRow]:
    return [
        LockRow(
            _title(lock),
            plural(lock.failures, "wrong password", "wrong passwords"),
            lock.until,
            lock.scope,
            lock.name,
            lock.address,
        )
        for lock in locks
    ]


def session_rows(sessions: Iterable[SessionLike], this: str) -> list[SessionRow]:
    """Return the sessions in words: the current one (`this`) first, then the most recently used first."""
    rows = [
        SessionRow(
            key=one.pk,
            browser=browser_words(one.agent),
            agent=one.agent,
            address=one.address or _("unknown"),
            since=one.created_at,
            seen_at=one.seen_at,
            is_this=one.pk == this,
        )
        for one in sessions
    ]
    return sorted(rows, key=lambda row: (row.is_this, row.seen_at), reverse=True)


def browser_words(agent: str) -> str:
    """Return for example "Firefox on Windows" from a User-Agent header, or its first word when it is no known browser."""
    browser = next((name for name, pattern in _BROWSERS if pattern.search(agent)), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    if browser and system:
        return _("{browser} on {system}", browser=browser, system=system)
    return browser or agent.split(" ")[0][:40] or _("Unknown browser")


def _title(lock: LockLike) -> str:
    if lock.name and lock.address:
        return _("{name} at {address}", name=lock.name, address=lock.address)
    return (
        _("{name} from every new address", name=lock.name)
        if lock.name
        else _("everybody at {address}", address=lock.address)
    )
