"""Puts schedules into words: when they are due, by the clocks of their time zone, and what they do then; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.jobs.cronwords import cron_words
from grid.jobs.scheduletimes import read_timetable

OVERLAP_WORDS = {
    "skip": _("Skip that time"),
    "queue": _("Queue it: it starts when the earlier run has ended"),
    "replace": _("Replace the earlier run: it is stopped first"),
}
MISSED_WORDS = {"once": _("Run once"), "none": _("Do not run")}


@dataclass(frozen=True, slots=True)
class ScheduleTimes:
    """What a schedule's text means: in words, and the next times; or why it is none."""

    words: str = ""
    times: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    id: int
    cron: str
    time_zone: str
    overlap: str
    missed: str
    next_at: datetime | None
    paused: str
    meaning: ScheduleTimes
    history: tuple[tuple[str, str], ...]  # when, and a sentence
    waits: str = ""  # why a time that has come is put off

    @property
    def name(self) -> str:
        return self.meaning.words or self.cron

    @property
    def fragment(self) -> str:
        """The id of the part of the page that says when it runs next."""
        return f"schedule-next-{self.id}"

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        return (
            (_("Time zone"), self.time_zone),
            (_("If an earlier run has not ended"), OVERLAP_WORDS.get(self.overlap, self.overlap)),
            (_("After an outage"), MISSED_WORDS.get(self.missed, self.missed)),
        )


def schedule_times(cron: str, time_zone: str, now: datetime) -> ScheduleTimes:
    """Return what a typed or stored schedule means."""
    try:
        timetable = read_timetable(cron, time_zone, now)
    except Rejected as refused:
        return ScheduleTimes(problems=tuple(problem.message for problem in refused.problems))
    times = (local_time(moment, timetable.zone) for moment in timetable.following(now))
    return ScheduleTimes(cron_words(timetable.cron), tuple(times))


def local_time(moment: datetime, zone: ZoneInfo) -> str:
    """Return "Tue 24 Nov 2026 14:00 CET"."""
    return f"{moment.astimezone(zone):%a %-d %b %Y %H:%M %Z}"
