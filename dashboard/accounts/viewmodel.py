"""Puts people's accounts into words: states, roles and what a change of one does, sessions, and locks of logins; pure."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from urllib.parse import urlencode

from dashboard.shell.viewmodels.listing import FilterChip
from dashboard.shell.viewmodels.states import ROLE_TITLES
from grid.accounts.lockouts import Lock
from grid.core.regexes import Expression
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import duration, listed, listed_up_to, plural
from grid.models import Session, User

_NAMED = 2  # projects in a row of the list


class PersonState(StrEnum):
    ACTIVE = "active"
    INVITED = "invited"
    DEACTIVATED = "deactivated"


STATE_TONES = {PersonState.ACTIVE: "ok", PersonState.INVITED: "wait", PersonState.DEACTIVATED: "neutral"}
STATE_TITLES: Mapping[str, str] = {
    PersonState.ACTIVE: _("Active"),
    PersonState.INVITED: _("Invited"),
    PersonState.DEACTIVATED: _("Deactivated"),
}
# What each role may do beyond the person's own projects.
ROLE_WORDS = {
    "practitioner": _("launches in projects"),
    "auditor": _("also sees everything"),
    "operator": _("also stops and changes everybody's executions"),
    "admin": _("also edits tiers, environments, projects, people and settings"),
}


@dataclass(frozen=True, slots=True)
class PersonRow:
    """An account in the list of people; `tone` is its state's look."""

    user: User
    role: str
    projects: str
    state: str
    tone: str


def person_state(user: User) -> PersonState:
    if not user.is_active:
        return PersonState.DEACTIVATED
    return PersonState.ACTIVE if user.has_usable_password() else PersonState.INVITED


def person_row(user: User, role: str, projects: Sequence[str]) -> PersonRow:
    state = person_state(user)
    shown = listed_up_to(_NAMED, projects) if projects else ""
    return PersonRow(user, ROLE_TITLES[role], shown, STATE_TITLES[state], STATE_TONES[state])


def people_chips(conditions: Mapping[str, str]) -> list[FilterChip]:
    """Return the conditions of the list, each with the way to drop it alone."""
    titles = {"text": "“{value}”", "role": _("Role: {value}"), "state": _("State: {value}")}
    named: Mapping[str, Mapping[str, str]] = {"role": ROLE_TITLES, "state": STATE_TITLES}
    chips = []
    for name, value in conditions.items():
        rest = urlencode({other: text for other, text in conditions.items() if other != name})
        words = named.get(name, {}).get(value, value)
        chips.append(FilterChip(titles[name].format(value=words), f"?{rest}" if rest else ""))
    return chips


def valid_for(seconds: int) -> str:
    """Return how long a link works: in days where it is days."""
    days, rest = divmod(seconds, 24 * 60 * 60)
    return plural(days, "day", "days") if days and not rest else duration(timedelta(seconds=seconds))


def deactivation_sentences(
    *, sessions: int, waiting: int, running: int, grace: timedelta, owned: Sequence[str]
) -> list[str]:
    """Return what deactivating an account does to its sessions and executions, and what is kept."""
    ended = ngettext(
        "{count:,} session ends now, and they cannot log in.",
        "{count:,} sessions end now, and they cannot log in.",
        sessions,
    )
    stopped = ngettext(
        "{count:,} active execution is stopped after {grace}, unless you activate the account before then.",
        "{count:,} active executions are stopped after {grace}, unless you activate the account before then.",
        running,
        grace=duration(grace),
    )
    owner = _("They stay the owner of {owned}; choose another owner on the project's page.")
    return [
        ended if sessions else _("They are logged out and cannot log in."),
        *([_cancelled(waiting)] if waiting else []),
        *([stopped] if running else []),
        _("Files, workspaces, projects and history are kept, and so is the role."),
        *([owner.format(owned=listed(owned))] if owned else []),
    ]


def _cancelled(queued: int) -> str:
    return ngettext(
        "{count:,} execution in the queue is cancelled now.",
        "{count:,} executions in the queue are cancelled now.",
        queued,
    )


OWNER, CONTRIBUTOR, VIEWER = "owner", "contributor", "viewer"
# What each permission of `dashboard.shell.access` lets a person do.
PERMISSION_WORDS = {
    "observe": _("see the infrastructure and everybody's executions, logs and usage"),
    "operate": _("stop and change everybody's executions, and reorder the queue"),
    "read audit": _("read who did what in the audit log"),
    "administer": _("edit tiers, environments, projects, people and settings"),
}


@dataclass(frozen=True, slots=True)
class ProjectWork:
    """What a person has in a project: executions in the queue, other active executions, active schedules, and runs that wait for one."""

    queued: int = 0
    running: int = 0
    schedules: int = 0
    waiting: int = 0

    def __bool__(self) -> bool:
        return self != ProjectWork()


def member_sentences(
    name: str, *, before: str, after: str, work: ProjectWork, grace: timedelta, sees_all: bool
) -> list[str]:
    """Return what the change of a role in a project does; `before` is "" for who is no member, `after` for a removal, and `sees_all` means
    that the role on the platform lets the person see every project."""
    if after == CONTRIBUTOR:
        return [
            _("{name} can launch in the project, open what is shared in it, and read and change its files.", name=name),
            _("What they launch gets the project's secrets, and they can set and delete these."),
        ]
    sentences = []
    if after == VIEWER:
        sentences.append(_("{name} sees the project's executions and logs.", name=name))
    elif not sees_all:
        sentences.append(_("{name} no longer sees the project, its executions or their logs.", name=name))
    if before in (OWNER, CONTRIBUTOR):
        lost = _("{name} can no longer launch in the project, open its programs or use its files.", name=name)
        kept = _("Their workspaces, jobs and files in the project are kept.")
        sentences += [lost, *work_sentences(work, grace), kept]
    return sentences


def work_sentences(work: ProjectWork, grace: timedelta) -> list[str]:
    running = ngettext(
        "{count:,} active execution of theirs is stopped after {grace}, unless you undo this before then.",
        "{count:,} active executions of theirs are stopped after {grace}, unless you undo this before then.",
        work.running,
        grace=duration(grace),
    )
    waiting = ngettext(
        "{count:,} waiting run of their jobs is not launched.",
        "{count:,} waiting runs of their jobs are not launched.",
        work.waiting,
    )
    schedules = ngettext(
        "{count:,} schedule of their jobs is paused now.",
        "{count:,} schedules of their jobs are paused now.",
        work.schedules,
    )
    counted = (
        (work.running, running),
        (work.queued, _cancelled(work.queued)),
        (work.waiting, waiting),
        (work.schedules, schedules),
    )
    none = _("They have no active executions or schedules in the project.")
    return [sentence for count, sentence in counted if count] or [none]


def role_sentences(before: Collection[str], after: Collection[str]) -> list[str]:
    """Return what the change of a role on the platform gives and takes, each role as the permissions that it has."""
    gained = [words for name, words in PERMISSION_WORDS.items() if name in after and name not in before]
    lost = [words for name, words in PERMISSION_WORDS.items() if name in before and name not in after]
    sentences = [_("They can {gained}.", gained=listed(gained))] if gained else []
    if lost:
        sentences.append(_("They can no longer {lost}. Open pages with any of this close at once.", lost=listed(lost)))
    unchanged = _("Their own executions and their roles in projects do not change.")
    return [*(sentences or [_("They have this role already.")]), unchanged]


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
    lock: Lock
    title: str
    failures: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    session: Session
    browser: str
    is_this: bool


def lock_sentence(scope: str, left: timedelta) -> str:
    """Return the message to a locked-out user, which does not reveal whether the account exists."""
    wait = plural(max(1, math.ceil(left.total_seconds() / 60)), "minute", "minutes")
    sentence = _("Too many wrong passwords {locked}. Try again in {wait}, or ask an admin to unlock it.")
    return sentence.format(locked=_LOCKED[scope], wait=wait)


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
    title = _("{name} from every new address") if lock.name else _("everybody at {address}")
    return title.format(name=lock.name, address=lock.address)
