"""Maintenance that operators announce: when launches are refused, in which words, and telling the owners of running executions, once each.

The leading controller looks every half minute. A row for each pair of announcement and owner says who was notified, and is written with the
notification: two controllers at once, or one that is killed half-way, notify nobody twice and nobody never.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import IntegrityError, transaction

from grid.core.reasons import Reader, Reason, Sentence
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import as_sentence, listed_up_to, moment_words
from grid.database.periodic import PeriodicTask
from grid.database.prepared import Prepared
from grid.database.seam import Database
from grid.models import Announcement, AnnouncementReader, Execution, State, User
from grid.models.execution import object_name_of
from grid.notifications.outbox import tell_of_maintenance
from grid.projects.departures import LIVES

MAINTENANCE = "maintenance"
_NEVER = datetime.max.replace(tzinfo=UTC)
_NAMED = 5  # executions in a notification
LOOK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Nothing is launched from `starts_at` until before `ends_at`, or until an operator ends it; `text` is the operator's."""

    announcement_id: str
    starts_at: datetime
    ends_at: datetime | None
    text: str

    def holds(self, now: datetime) -> bool:
        return self.starts_at <= now and not self.is_over(now)

    def is_over(self, now: datetime) -> bool:
        return self.ends_at is not None and self.ends_at <= now


def in_force(known: Iterable[Maintenance], now: datetime) -> Maintenance | None:
    """Return the maintenance that refuses launches now; of several the one that ends last, because it decides when they are taken."""
    holding = [maintenance for maintenance in known if maintenance.holds(now)]
    return max(holding, key=lambda maintenance: maintenance.ends_at or _NEVER, default=None)


def next_one(known: Iterable[Maintenance], now: datetime) -> Maintenance | None:
    coming = [maintenance for maintenance in known if maintenance.starts_at > now and not maintenance.is_over(now)]
    return min(coming, key=lambda maintenance: maintenance.starts_at, default=None)


def reason_of(maintenance: Maintenance) -> Reason:
    """Return the reason of what it refuses, and of what waits for its end."""
    ends_at = maintenance.ends_at
    values = {"text": maintenance.text, "until": ends_at.isoformat() if ends_at else None}
    return Reason(MAINTENANCE, values, ends_at)


def waiting_sentence(values: Mapping[str, Any], reader: Reader) -> str:
    return _("Maintenance {until}: {text} It starts by itself afterwards.", **_texts(values))


def refused_sentence(values: Mapping[str, Any]) -> str:
    return _("Maintenance {until}: {text} No new launches before it ends.", **_texts(values))


SENTENCES: dict[str, Sentence] = {MAINTENANCE: waiting_sentence}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    ends_at = datetime.fromisoformat(values["until"]) if values["until"] else None
    return {"until": _until(ends_at), "text": as_sentence(values["text"])}


def coming_sentence(maintenance: Maintenance) -> str:
    return _(
        "No new launches from {start}, {until}: {text}",
        start=moment_words(maintenance.starts_at),
        until=_until(maintenance.ends_at),
        text=as_sentence(maintenance.text),
    )


def told_sentence(maintenance: Maintenance, executions: Sequence[str]) -> str:
    continuing = ngettext(
        "{count:,} running execution of yours continues: {executions}. "
        "Once it has stopped, it cannot be launched again before it ends.",
        "{count:,} running executions of yours continue: {executions}. "
        "Once they have stopped, they cannot be launched again before it ends.",
        len(executions),
        executions=listed_up_to(_NAMED, executions),
    )
    return f"{coming_sentence(maintenance)} {continuing}"


def _until(ends_at: datetime | None) -> str:
    return _("until {until}", until=moment_words(ends_at)) if ends_at else _("until an operator ends it")


_ANNOUNCED = Prepared(1, lambda now: Announcement.objects.not_ended(now).filter(no_launches_from__isnull=False))


def announced(now: datetime) -> list[Maintenance]:
    return maintenances(_ANNOUNCED(now))


def maintenances(rows: Iterable[Announcement]) -> list[Maintenance]:
    """Return what these announcements say about launches; some say nothing."""
    return [
        Maintenance(row.pk, row.no_launches_from, row.until_at, row.text)
        for row in rows
        if row.no_launches_from is not None
    ]


def current_maintenance(now: datetime) -> Maintenance | None:
    return in_force(announced(now), now)


def last_end(now: datetime) -> datetime | None:
    """Return when the latest maintenance ended; None without any."""
    ended = Announcement.objects.filter(no_launches_from__isnull=False, until_at__lte=now)
    return ended.order_by("-until_at").values_list("until_at", flat=True).first()


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

    async def run_once() -> None:
        await database(tell_owners, now=clock())

    return PeriodicTask("maintenance notices", LOOK_SECONDS, run_once)
