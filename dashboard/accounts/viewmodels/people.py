"""Puts people's accounts into words: states, rows of the list, and what deactivating one does; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from urllib.parse import urlencode

from dashboard.shell.viewmodels.listing import FilterChip
from dashboard.shell.viewmodels.states import ROLE_TITLES
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import duration, listed, listed_up_to, plural
from grid.models import User

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
    """Return the row, with the first of the projects and how many more there are."""
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
    sentences = [
        ngettext(
            "{count:,} session ends now, and they cannot log in.",
            "{count:,} sessions end now, and they cannot log in.",
            sessions,
        )
        if sessions
        else _("They are logged out and cannot log in.")
    ]
    if waiting:
        sentences.append(
            ngettext(
                "{count:,} execution in the queue is cancelled now.",
                "{count:,} executions in the queue are cancelled now.",
                waiting,
            )
        )
    if running:
        sentences.append(
            ngettext(
                "{count:,} active execution is stopped after {grace}, unless you activate the account before then.",
                "{count:,} active executions are stopped after {grace}, unless you activate the account before then.",
                running,
                grace=duration(grace),
            )
        )
    sentences.append(_("Files, workspaces, projects and history are kept, and so is the role."))
    if owned:
        sentences.append(
            _("They stay the owner of {owned}; choose another owner on the project's page.", owned=listed(owned))
        )
    return sentences
