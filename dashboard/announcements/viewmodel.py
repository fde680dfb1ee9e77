"""Announcements: the banner of every page, and the operators' list; pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Literal

from dashboard.shell.viewmodels.live import Fragment, ViewModel
from grid.core.translation import gettext as _
from grid.core.wording import moment_words
from grid.models import Announcement

REGION = "announcements"


class AnnouncementStage(IntEnum):
    """Where an announcement is in its time; the list has them in this order."""

    SHOWN = 0
    COMING = 1
    ENDED = 2


_WORDS: Mapping[AnnouncementStage, tuple[str, Literal["ok", "wait", "neutral"]]] = {
    AnnouncementStage.SHOWN: (_("Shown"), "ok"),
    AnnouncementStage.COMING: (_("Not yet"), "wait"),
    AnnouncementStage.ENDED: (_("Ended"), "neutral"),
}


class Banner(ViewModel, frozen=True, gc=False):
    id: str
    text: str
    severity: str
    times: str


class Banners(ViewModel, frozen=True, gc=False):
    """All announcements that one person has not hidden."""

    banners: tuple[Banner, ...] = ()


def banners_fragment(announcements: Iterable[Announcement], now: datetime) -> Fragment:
    """Return the banner of a person's pages now, of what the person has not hidden; warnings come first."""
    shown = [row for row in announcements if _stage(row, now) is AnnouncementStage.SHOWN]
    shown.sort(key=lambda row: (row.severity != Announcement.Severity.WARNING, row.from_at, row.pk))
    banners = tuple(Banner(row.pk, row.text, row.severity, " ".join(_sentences(row))) for row in shown)
    return Fragment(REGION, "announcements/fragments/announcements.html", Banners(banners))


def _sentences(announcement: Announcement) -> Iterator[str]:
    if announcement.no_launches_from is not None:
        yield _("No new launches from {begin}.", begin=moment_words(announcement.no_launches_from))
    if announcement.until_at is not None:
        yield _("Until {until_at}.", until_at=moment_words(announcement.until_at))


@dataclass(frozen=True, slots=True)
class AnnouncementRow:
    announcement: Announcement
    word: str
    tone: Literal["ok", "wait", "neutral"]
    times: str
    no_launches: str
    may_change: bool


def announcement_rows(announcements: Iterable[Announcement], now: datetime) -> list[AnnouncementRow]:
    """Return the rows: what is shown first, then what comes, then what has ended."""
    return [_row(row, now) for row in sorted(announcements, key=lambda row: _stage(row, now))]


def _stage(announcement: Announcement, now: datetime) -> AnnouncementStage:
    if announcement.until_at is not None and announcement.until_at <= now:
        return AnnouncementStage.ENDED
    return AnnouncementStage.SHOWN if announcement.from_at <= now else AnnouncementStage.COMING


def _row(announcement: Announcement, now: datetime) -> AnnouncementRow:
    stage, closes = _stage(announcement, now), announcement.no_launches_from
    begin = moment_words(announcement.from_at)
    times = _("{begin} until somebody ends it", begin=begin)
    if announcement.until_at:
        times = _("{begin} until {end}", begin=begin, end=moment_words(announcement.until_at))
    no_launches = _("No new launches from {begin}", begin=moment_words(closes)) if closes else ""
    may_change = stage is not AnnouncementStage.ENDED
    return AnnouncementRow(announcement, *_WORDS[stage], times, no_launches, may_change)
