"""Notifies the owners of running executions of maintenance, once each.

The leading controller looks every half minute. A row for each pair of announcement and owner says who was notified, and is written with the
notification: two controllers at once, or one that is killed half-way, notify nobody twice and nobody never.
"""

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from django.db import IntegrityError, transaction

from grid.announcements.rules import Maintenance, told_sentence
from grid.announcements.store import maintenances
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.models import Announcement, AnnouncementReader, Execution, State, User
from grid.models.execution import object_name_of
from grid.notifications.outbox import tell_of_maintenance
from grid.projects.departures import LIVES

LOOK_SECONDS = 30.0


def tell_owners(*, now: datetime) -> int:
    """Notify the owners of running executions of each maintenance whose announcement is shown; return how many notifications that made."""
    announced = maintenances(Announcement.objects.shown(now))
    if not announced:
        return 0
    running = _running_by_owner()
    return sum(_tell(maintenance, running, now) for maintenance in announced)


def _tell(maintenance: Maintenance, running: dict[int, list[str]], now: datetime) -> int:
    notified = AnnouncementReader.objects.filter(announcement=maintenance.announcement_id, told_at__isnull=False)
    left = running.keys() - set(notified.values_list("user_id", flat=True))
    return sum(_tell_one(maintenance, user, running[user.pk], now) for user in User.objects.filter(pk__in=left))


def _tell_one(maintenance: Maintenance, user: User, executions: list[str], now: datetime) -> bool:
    """Notify one owner; return False when another controller has, or the announcement is gone."""
    id = maintenance.announcement_id
    try:
        with transaction.atomic():
            AnnouncementReader.objects.get_or_create(announcement_id=id, user=user)
            if not AnnouncementReader.objects.filter(announcement=id, user=user, told_at=None).update(told_at=now):
                return False
            tell_of_maintenance(user, told_sentence(maintenance, executions), now=now)
    except IntegrityError:
        return False
    return True


def _running_by_owner() -> dict[int, list[str]]:
    """Return the names of running executions, without clusters that end with what they are attached to."""
    rows = Execution.objects.unsettled().filter(LIVES, attached_to=None).exclude(state=State.QUEUED)
    names: defaultdict[int, list[str]] = defaultdict(list)
    for id, kind, title, owner in rows.order_by("requested_at", "pk").values_list("pk", "kind", "title", "owner_id"):
        names[owner].append(title or object_name_of(kind, id))
    return names


def periodic(database: Database, clock: Callable[[], datetime]) -> PeriodicTask:
    """Return the task that notifies owners of a maintenance that comes near."""

    async def run_once() -> None:
        await database(tell_owners, now=clock())

    return PeriodicTask("maintenance notices", LOOK_SECONDS, run_once)
