"""Reads the maintenance that operators have announced: a few rows, whatever runs."""

from datetime import datetime

from grid.announcements.rules import Maintenance, in_force
from grid.models import Announcement


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
    """Return the maintenance that refuses launches now."""
    return in_force(announced(now), now)


def last_end(now: datetime) -> datetime | None:
    """Return when the latest maintenance ended; None without any."""
    ended = Announcement.objects.filter(no_launches_from__isnull=False, until_at__lte=now)
    return ended.order_by("-until_at").values_list("until_at", flat=True).first()
