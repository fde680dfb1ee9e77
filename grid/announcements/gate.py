"""Says whether launches are taken now: no maintenance is in force, and the project's budget is not used up. A few rows, whatever runs."""

from datetime import datetime

from grid.announcements.rules import MAINTENANCE, Maintenance, in_force, refused_sentence
from grid.core.errors import Problem
from grid.models import Announcement
from grid.usage.budgets.closing import CLOSED, problems_of_budget

# The reasons for which queued executions let all others pass, as they are stored with them.
STANDING_ASIDE = frozenset({CLOSED, MAINTENANCE})


def announced(now: datetime) -> list[Maintenance]:
    """Return every maintenance that has not ended, in force or announced."""
    rows = Announcement.objects.not_ended(now).filter(no_launches_from__isnull=False)
    return [found for row in rows if (found := maintenance_of(row)) is not None]


def maintenance_of(row: Announcement) -> Maintenance | None:
    """Return what an announcement says about launches; None for one that says nothing."""
    if row.no_launches_from is None:
        return None
    return Maintenance(row.pk, row.no_launches_from, row.until_at, row.text)


def current_maintenance(now: datetime) -> Maintenance | None:
    return in_force(announced(now), now)


def last_end(now: datetime) -> datetime | None:
    """Return when the latest maintenance ended; None without any."""
    ended = Announcement.objects.filter(no_launches_from__isnull=False, until_at__lte=now)
    return ended.order_by("-until_at").values_list("until_at", flat=True).first()


def problems_of_maintenance(now: datetime) -> list[Problem]:
    """Return why nothing may be launched by anybody now; [] when it may."""
    found = current_maintenance(now)
    return [Problem("", refused_sentence(found), MAINTENANCE)] if found is not None else []


def why_closed(project_id: str, now: datetime) -> list[Problem]:
    """Return why nothing new may be launched in the project now; [] when it may."""
    return [*problems_of_maintenance(now), *problems_of_budget(project_id, now)]
