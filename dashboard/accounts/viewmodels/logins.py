"""Puts logins into words: the message of a lock, the admins' list of locks, and a user's own sessions; pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from grid.accounts.lockouts import Lock
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.models import Session

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


@dataclass(frozen=True, slots=True)
class LockRow:
    """A lock in words, for admins."""

    lock: Lock
    title: str
    failures: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One of the user's own sessions."""

    session: Session
    browser: str
    is_this: bool


def lock_sentence(scope: str, left: timedelta) -> str:
    """Return the message to a locked-out user, which does not reveal whether the account exists."""
    wait = plural(max(1, math.ceil(left.total_seconds() / 60)), "minute", "minutes")
    return _(
        "Too many wrong passwords {locked}. Try again in {wait}, or ask an admin to unlock it.",
        locked=_LOCKED[scope],
        wait=wait,
    )


def lock_rows(locks: Iterable[Lock]) -> list[LockRow]:
    return [LockRow(lock, _title(lock), plural(lock.failures, "wrong password", "wrong passwords")) for lock in locks]


def session_rows(sessions: Iterable[Session], this: str) -> list[SessionRow]:
    """Return the sessions in words: the current one (`this`) first, then the most recently used first."""
    rows = [SessionRow(session, browser_words(session.agent), session.pk == this) for session in sessions]
    return sorted(rows, key=lambda row: (row.is_this, row.session.seen_at), reverse=True)


def browser_words(agent: str) -> str:
    """Return for example "Firefox on Windows" from a User-Agent header, or its first word when it is no known browser."""
    browser = next((name for name, pattern in _BROWSERS if pattern.search(agent)), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    if browser and system:
        return _("{browser} on {system}", browser=browser, system=system)
    return browser or agent.split(" ")[0][:40] or _("Unknown browser")


def _title(lock: Lock) -> str:
    if lock.name and lock.address:
        return _("{name} at {address}", name=lock.name, address=lock.address)
    return (
        _("{name} from every new address", name=lock.name)
        if lock.name
        else _("everybody at {address}", address=lock.address)
    )
