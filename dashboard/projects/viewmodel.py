"""Puts the members of a project into words; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from grid.core.translation import gettext as _


@dataclass(frozen=True, slots=True)
class PeopleWords:
    """The members of a project: its owner, and all others in one text."""

    owner: str
    others: str


def people_words(members: Iterable[tuple[str, str]]) -> PeopleWords:
    """Return the members in words from their names and roles; viewers come last and are marked as such."""
    by_role: dict[str, list[str]] = {"owner": [], "contributor": [], "viewer": []}
    for name, role in members:
        by_role[role].append(name)
    viewers = [_("{name} (viewer)", name=name) for name in sorted(by_role["viewer"])]
    others = [*sorted(by_role["contributor"]), *viewers]
    return PeopleWords("".join(by_role["owner"]), ", ".join(others) or _("nobody else"))
