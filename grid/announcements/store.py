"""Reads the maintenance that operators have announced: a few rows, whatever runs."""

from datetime import datetime

from django.db.models import QuerySet

from grid.announcements.rules import Maintenance, in_force
from grid.models import Announcement


def announced(now: datetime) -> list[Maintenance]:
    """Return every maintenance that has not ended, in force or announced."""
    return maintenances(Announcement.objects.not_ended(now).filter(no_launches_from__isnull=False))


def maintenances(rows: QuerySet[Announcement]) -> list[Maintenance]:
    """Return what these announcements say about launches; some say nothing."""
    return [
        Maintenance(row.pk, row.no_launches_from, row.until_at, row.text)
        for row in rows
        if row.no_launches_from is not None
    ]


def current_maintenance(now: datetime) -> Maintenance | None:
    """Return the maintenance that refuses launches now."""
    return in_force(announced(now), now)


def last_end(now: datetime) -> datetime | None:
    """Return when the latest maintenance ended; None without any."""
    ended = Announcement.objects.filter(no_launches_from__isnull=False, until_at__lte=now)
    return ended.order_by("-until_at").values_list("until_at", flat=True).first()
