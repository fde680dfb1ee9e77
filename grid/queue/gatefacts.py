"""Reads the facts of the gate: a few rows by their keys, however much runs, waits or was spent."""

from collections.abc import Collection
from datetime import datetime

from grid.announcements.rules import reason_of
from grid.announcements.store import current_maintenance
from grid.core.errors import Problem
from grid.core.reasons import Reason
from grid.projects.departures import departed_owners
from grid.queue.gate import Candidate, GateFacts, refusal, why_not_launch
from grid.queue.takeover import current_takeover
from grid.queue.takeover import reason_of as takeover_reason
from grid.usage.budgets.closing import closed_projects


def facts_of_queue(data_plane: str, projects: Collection[str], now: datetime) -> GateFacts:
    """Return the facts about all that waits in the data plane, which is of these projects."""
    takeover = current_takeover(now)
    return GateFacts(
        _maintenance(now),
        takeover_reason(takeover) if takeover is not None else None,
        closed_projects(projects, now),
        departed_owners(data_plane),
    )


def closed_to_launch(project_id: str, now: datetime) -> Reason | None:
    """Return why nothing is launched in the project now, but for a full queue. Whether somebody may launch in it at all is asked before: by
    the validation of a request, and of `departures.why_departed` for a resume or a schedule."""
    facts = GateFacts(_maintenance(now), budgets=closed_projects([project_id], now))
    return why_not_launch(facts, Candidate(None, project_id))


def why_closed(project_id: str, now: datetime) -> list[Problem]:
    """Return `closed_to_launch` as problems of a request; [] when nothing closes the gate."""
    reason = closed_to_launch(project_id, now)
    return [refusal(reason)] if reason is not None else []


def _maintenance(now: datetime) -> Reason | None:
    maintenance = current_maintenance(now)
    return reason_of(maintenance) if maintenance is not None else None
