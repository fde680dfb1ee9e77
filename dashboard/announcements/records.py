"""Reads announcements for pages, and writes what people decide about them.

Those of open pages are read for all pages of a process together, twice a minute, because they begin and end by the clock.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from dashboard.announcements.viewmodel import banners_fragment
from dashboard.shell.access import Viewer
from dashboard.shell.pages.periodic import Board
from dashboard.shell.viewmodels.live import PageUpdate
from grid.announcements.maintenance import announced, coming_sentence, next_one
from grid.audit import entries as audit
from grid.models import Announcement, AnnouncementReader, AuditEntry, User
from grid.runtime import Runtime


def shown_announcements(now: datetime) -> list[tuple[Announcement, set[int]]]:
    """Return what is shown now, each with who has hidden it: one query, and another while there is anything."""
    rows = list(Announcement.objects.shown(now))
    hidden: defaultdict[str, set[int]] = defaultdict(set)
    if rows:
        readers = AnnouncementReader.objects.filter(announcement__in=rows, hidden_at__isnull=False)
        for id, user in readers.values_list("announcement_id", "user_id"):
            hidden[id].add(user)
    return [(row, hidden[row.pk]) for row in rows]


def announcements_for(user_id: int, now: datetime) -> list[Announcement]:
    """Return what one person has not hidden of what is shown now, in one query."""
    hidden = AnnouncementReader.objects.filter(user=user_id, hidden_at__isnull=False).values("announcement_id")
    return list(Announcement.objects.shown(now).exclude(pk__in=hidden))


def coming_maintenance(now: datetime) -> str:
    """Return from when on launches will be refused; "" when no maintenance is announced."""
    coming = next_one(announced(now), now)
    return coming_sentence(coming) if coming else ""


def hide(announcement_id: str, user_id: int, now: datetime) -> None:
    """Hide an announcement from one person for its life; nothing for one that does not exist."""
    if Announcement.objects.filter(pk=announcement_id).exists():
        who: dict[str, Any] = {"announcement_id": announcement_id, "user_id": user_id}
        AnnouncementReader.objects.update_or_create(**who, defaults={"hidden_at": now})


@transaction.atomic
def save(instance: Announcement, actor: User) -> bool:
    """Store an announcement, with an audit entry; return False when nothing differs from what is stored."""
    stored = Announcement.objects.select_for_update(no_key=True).filter(pk=instance.pk).first()
    before = audit.snapshot(stored) if stored is not None else None
    if stored is None:
        instance.author_name = actor.get_username()
    instance.save()
    before_and_now = [(row.no_launches_from, row.until_at) for row in (stored or instance, instance)]
    if before_and_now[0] != before_and_now[1]:
        instance.readers.update(told_at=None)  # what owners were told of these times no longer holds
    action = AuditEntry.Action.CREATED if stored is None else AuditEntry.Action.CHANGED
    return _recorded(instance, actor, action, before)


@transaction.atomic
def end(announcement_id: str, actor: User, now: datetime) -> bool:
    """End an announcement now, with an audit entry; return False when it has ended already. One that was not shown yet never is."""
    row = Announcement.objects.select_for_update(no_key=True).not_ended(now).filter(pk=announcement_id).first()
    if row is None:
        return False
    before = audit.snapshot(row)
    row.from_at, row.until_at = min(row.from_at, now), now
    row.save(update_fields=["from_at", "until_at"])
    return _recorded(row, actor, AuditEntry.Action.ENDED, before)


def _recorded(instance: Announcement, actor: User, action: AuditEntry.Action, before: dict[str, Any] | None) -> bool:
    changes = audit.differences(before or {}, audit.snapshot(instance))
    shown = {name: [_shown(old), _shown(new)] for name, (old, new) in changes.items()}
    if shown:
        audit.write_entry(actor, instance, shown, action=action)
    return bool(shown)


def _shown(value: Any) -> Any:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else value


LOOK_SECONDS = 30.0
KEPT_SECONDS = 15.0  # what one page has read serves all others meanwhile
SPREAD_SECONDS = 5.0

_board = Board[Sequence[tuple[Announcement, set[int]]]]("announcements", shown_announcements, ())


async def announcement_updates(runtime: Runtime, viewer: Viewer) -> AsyncIterator[Sequence[PageUpdate]]:
    """Yield the announcements of a person's page whenever they change, and at the first look, as nobody knows what the browser shows."""
    shown = None
    while True:
        await asyncio.sleep(LOOK_SECONDS + random.random() * SPREAD_SECONDS)
        announcements = await _board.value(KEPT_SECONDS)
        fragment = banners_fragment((row for row, hidden in announcements if viewer.id not in hidden), timezone.now())
        if fragment != shown:
            shown = fragment
            yield [PageUpdate("replace", fragment.id, (fragment,))]
