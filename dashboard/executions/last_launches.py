"""Reads what a person launched last, synchronously: the launch form begins with it, and its environments are in that order."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dashboard.executions.forms import new_token
from grid.models import Environment, Execution, User

LOOKED_AT = 300  # of the latest launches: an index has them in order, so the rest of the history costs nothing


@dataclass(frozen=True, slots=True)
class LastLaunches:
    """The latest launches of a person, the newest first: kind, project, environment and tier of each."""

    rows: tuple[tuple[str, str, str, str], ...]

    def first_choices(self, kind: str) -> dict[str, Any]:
        """Return the initial values of a new form of that kind."""
        initial: dict[str, Any] = {"token": new_token(), "project": self.rows[0][1] if self.rows else None}
        alike = next((row for row in self.rows if row[0] == kind), None)
        return initial | ({"environment": alike[2], "tier": alike[3]} if alike else {})

    def in_order(self, environments: Iterable[Environment], chosen: str) -> list[Environment]:
        """Return the environments: the chosen one, those used last, then the rest, of which those without a framework come first."""
        used = list(dict.fromkeys(row[2] for row in self.rows))
        ranks = {id: rank for rank, id in enumerate(used)}
        return sorted(
            environments, key=lambda row: (row.pk != chosen, ranks.get(row.pk, len(used)), bool(row.frameworks))
        )


def last_launches(user: User) -> LastLaunches:
    rows = Execution.objects.filter(owner=user).order_by("-requested_at")
    return LastLaunches(tuple(rows.values_list("kind", "project_id", "environment_id", "tier_id")[:LOOKED_AT]))
