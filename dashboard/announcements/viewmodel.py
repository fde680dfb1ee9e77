"""Announcements: the banner of every page, and the operators' list; pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from dashboard.shell.viewmodels.live import Fragment, ViewModel
from grid.core.translation import gettext as _
from grid.core.wording import moment_words

REGION = "announcements"
_FRAGMENT = "announcements/fragments/announcements.html"


@dataclass(frozen=True, slots=True)
class AnnouncementRecord:
    """A stored announcement; `until_at` of None means until somebody ends it."""

    id: str
    text: str
    severity: str
    from_at: datetime
    until_at: datetime | None
    author: str
    no_launches_from: datetime | None = None
    hidden_by: frozenset[int] = frozenset()

    def is_shown(self, now: datetime) -> bool:
        return self.from_at <= now and not self.is_ended(now)

    def is_ended(self, now: datetime) -> bool:
        return self.until_at is not None and self.until_at <= now


class Banner(ViewModel, frozen=True, gc=False):
    """One announcement as everybody reads it."""

    id: str
    text: str
    severity: str
    times: str


class Banners(ViewModel, frozen=True, gc=False):
    """All announcements that one person has not hidden."""

    banners: tuple[Banner, ...] = ()


def banners_fragment(records: Iterable[AnnouncementRecord], user_id: int, now: datetime) -> Fragment:
    """Return the banner of a person's pages now, without what the person has hidden; warnings come first."""
    shown = [record for record in records if record.is_shown(now) and user_id not in record.hidden_by]
    shown.sort(key=lambda record: (record.severity != "warning", record.from_at, record.id))
    banners = tuple(Banner(record.id, record.text, record.severity, " ".join(_sentences(record))) for record in shown)
    return Fragment(REGION, _FRAGMENT, Banners(banners))


def _sentences(record: AnnouncementRecord) -> Iterator[str]:
    if record.no_launches_from is not None:
        yield _("No new launches from {no_launches_from}.", no_launches_from=moment_words(record.no_launches_from))
    if record.until_at is not None:
        yield _("Until {until_at}.", until_at=moment_words(record.until_at))


@dataclass(frozen=True, slots=True)
class AnnouncementRow:
    """An announcement in the operators' list."""

    id: str
    text: str
    word: str
    severity: Literal["ok", "problem", "wait", "neutral"]
    times: str
    no_launches: str
    author: str
    is_warning: bool
    may_change: bool


def announcement_rows(records: Sequence[AnnouncementRecord], now: datetime) -> list[AnnouncementRow]:
    """Return the rows: what is shown first, then what comes, then what has ended."""
    return [_row(record, now) for record in sorted(records, key=lambda record: _stage(record, now))]


def _stage(record: AnnouncementRecord, now: datetime) -> int:
    return 2 if record.is_ended(now) else 0 if record.is_shown(now) else 1


def _row(record: AnnouncementRecord, now: datetime) -> AnnouncementRow:
    words: tuple[tuple[str, Literal["ok", "wait", "neutral"]], ...] = (
        (_("Shown"), "ok"),
        (_("Not yet"), "wait"),
        (_("Ended"), "neutral"),
    )
    word, severity = words[_stage(record, now)]
    begin = moment_words(record.from_at)
    times = (
        _("{begin} until {end}", begin=begin, end=moment_words(record.until_at))
        if record.until_at
        else _("{begin} until somebody ends it", begin=begin)
    )
    return AnnouncementRow(
        id=record.id,
        text=record.text,
        word=word,
        severity=severity,
        times=times,
        no_launches=_("No new launches from {no_launches_from}", no_launches_from=moment_words(record.no_launches_from))
        if record.no_launches_from
        else "",
        author=record.author,
        is_warning=record.severity == "warning",
        may_change=not record.is_ended(now),
    )
