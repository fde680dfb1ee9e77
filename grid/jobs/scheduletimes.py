"""When a schedule is due, by the clocks of its time zone. Pure. Where clocks are set, a schedule that names hours follows the clock on the
wall: a time that is skipped is due at the next minute that exists, and one that comes twice is due the first time only. A schedule for
every hour follows real time instead, as its reader expects of "every 15 minutes": nothing is skipped, and the hour that comes twice counts
twice."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from grid.core.cron import BadSchedule, CronFields, find_zone, parse_schedule
from grid.core.errors import Problem, Rejected
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import MONTHS, listed

MAXIMUM_CRON = 100  # characters
ON_TIME = timedelta(minutes=5)  # later than this a time has been missed
_MINUTE = timedelta(minutes=1)
_EXAMPLE = _("Write five fields: minute, hour, day of the month, month and day of the week, such as 0 6 * * 1-5.")
_DAYS = (_("Sunday"), _("Monday"), _("Tuesday"), _("Wednesday"), _("Thursday"), _("Friday"), _("Saturday"))
_MOST = 4  # names or times in a sentence; more are easier to read in the next times


@dataclass(frozen=True, slots=True)
class CronTimetable:
    """The times of a schedule. Every one is a whole minute, in UTC."""

    cron: CronFields
    zone: ZoneInfo

    def next(self, after: datetime) -> datetime | None:
        """Return the first time after this one; None when there is none within five years."""
        if len(self.cron.hours) == 24:
            return self.cron.next(after, self.zone)
        shown = after.astimezone(self.zone).replace(tzinfo=UTC)
        while (wall := self.cron.next(shown)) is not None:
            moment = _moment_of(wall.replace(tzinfo=None), self.zone)
            if moment > after:
                return moment
            shown = wall
        return None

    def following(self, after: datetime, count: int = 5) -> list[datetime]:
        times = list[datetime]()
        while len(times) < count and (moment := self.next(times[-1] if times else after)) is not None:
            times.append(moment)
        return times

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the last time from `since`, a whole minute, to `until`, both included; None when there is none."""
        latest = self.next(since - _MINUTE)
        if latest is None or latest > until:
            return None
        # The next time after a moment only grows with the moment, so half of what is left is excluded with each look.
        low, high = 0, int((until - latest) / _MINUTE)
        start = latest
        while low < high:
            middle = (low + high) // 2
            later = self.next(start + middle * _MINUTE)
            if later is not None and later <= until:
                latest, low = later, int((later - start) / _MINUTE)
            else:
                high = middle
        return latest


@dataclass(frozen=True, slots=True)
class DueTimes:
    """What became due: the time to run for, if any, and which earlier or late ones are left out, from the first to the last of them."""

    run: datetime | None
    missed: tuple[datetime, datetime] | None = None


def read_timetable(cron: str, time_zone: str, now: datetime) -> CronTimetable:
    """Parse what somebody typed. Raise Rejected with the problems, each at its field."""
    problems = []
    zone, fields = ZoneInfo("UTC"), None
    try:
        zone = find_zone(time_zone)
    except ValueError:
        problems.append(Problem("time_zone", _("Choose a time zone by its name, such as Europe/Berlin."), "time_zone"))
    try:
        fields = _read_cron(cron.strip())
    except ValueError as wrong:
        problems.append(Problem("cron", str(wrong), "cron"))
    if problems or fields is None:
        raise Rejected(problems)
    timetable = CronTimetable(fields, zone)
    if timetable.next(now) is None:
        sentence = _("No such date comes within five years: look at the day and the month, such as 30 February.")
        raise Rejected([Problem("cron", sentence, "never")])
    return timetable


def due_times(timetable: CronTimetable, first: datetime, now: datetime, *, runs_missed: bool) -> DueTimes:
    """Return what is due now, when `first` is the time that was next. At most one run makes up for all that passed."""
    last = timetable.last(first, now)
    if last is None:
        return DueTimes(None)
    is_on_time = now - last <= ON_TIME
    if not is_on_time and not runs_missed:
        return DueTimes(None, (first, last))
    before = timetable.last(first, last - _MINUTE)
    return DueTimes(last, (first, before) if before is not None else None)


def _read_cron(text: str) -> CronFields:
    if not text:
        raise ValueError(_EXAMPLE)
    if len(text) > MAXIMUM_CRON:
        raise ValueError(_("Use at most {most} characters; these are {length:,}.", most=MAXIMUM_CRON, length=len(text)))
    if not (text.isascii() and text.isprintable()):
        raise ValueError(_("It holds a character that no schedule has. {example}", example=_EXAMPLE))
    try:
        fields = parse_schedule(text.lower() if text.startswith("@") else text)
    except BadSchedule as wrong:
        if "7" in text.split()[-1] and "above maximum (6): 7" in str(wrong):
            raise ValueError(_("Write Sunday as 0 or SUN: the days of the week go from 0 to 6 here.")) from wrong
        raise ValueError(_("This is no schedule: {problem}. {example}", problem=wrong, example=_EXAMPLE)) from wrong
    if not isinstance(fields, CronFields):
        raise ValueError(_("@every depends on when it was saved, so it is not taken. {example}", example=_EXAMPLE))
    if not (fields.minutes and fields.hours and fields.days and fields.months and fields.weekdays):
        raise ValueError(_("One of its fields is empty. {example}", example=_EXAMPLE))
    return fields


def _moment_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment at which the clocks first show this time, or the next that they show."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    moment = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)  # before the clocks are set
    while moment.astimezone(zone).replace(tzinfo=None) < wall:
        moment += _MINUTE
    return moment


def cron_words(cron: CronFields) -> str:
    """Return words such as "Monday to Friday at 06:00"; "" when they would be longer than the text is worth."""
    by_hour = len(cron.hours) < 24
    times, days, months = _hours(cron) if by_hour else _minutes(cron), _days(cron), _months(cron.months)
    if not (times and days and months):
        return ""
    every_month = len(cron.months) == 12
    if by_hour:
        words = _("{days} at {times}") if every_month else _("{days} in {months} at {times}")
        words = words.format(days=days, months=months, times=times)
    else:
        of_days = [] if _is_every_day(cron) else [days]
        words = ", ".join([times, *of_days, *([] if every_month else [_("in {months}", months=months)])])
    return words[:1].upper() + words[1:]


def _hours(cron: CronFields) -> str:
    if len(cron.minutes) * len(cron.hours) > _MOST:
        return ""
    return listed(f"{hour:02}:{minute:02}" for hour in sorted(cron.hours) for minute in sorted(cron.minutes))


def _minutes(cron: CronFields) -> str:
    minutes = sorted(cron.minutes)
    if len(minutes) == 60:
        return _("every minute")
    if minutes == [0]:
        return _("every hour, on the hour")
    if len(minutes) == 1:
        return ngettext("every hour, {count} minute past", "every hour, {count} minutes past", minutes[0])
    step = minutes[1] - minutes[0]
    return _("every {step} minutes", step=step) if 60 % step == 0 and minutes == list(range(0, 60, step)) else ""


def _is_every_day(cron: CronFields) -> bool:
    is_any_day, is_any_weekday = len(cron.days) == 31, len(cron.weekdays) == 7
    # When both are restricted either is enough, so one that holds every day decides.
    return (is_any_day and is_any_weekday) or (cron.either_day and (is_any_day or is_any_weekday))


def _days(cron: CronFields) -> str:
    if _is_every_day(cron):
        return _("every day")
    by_month = [] if len(cron.days) == 31 else [_days_of_month(cron.days)]
    by_week = [] if len(cron.weekdays) == 7 else [_weekdays(cron.weekdays)]
    parts = by_month + by_week
    return listed(parts) if all(parts) else ""


def _weekdays(days: Collection[int]) -> str:
    in_order: Sequence[int] = sorted(days, key=lambda day: (day - 1) % 7)
    if in_order == [1, 2, 3, 4, 5]:
        return _("Monday to Friday")
    return _("every {days}", days=listed(_DAYS[day] for day in in_order)) if len(in_order) <= _MOST else ""


def _days_of_month(days: Collection[int]) -> str:
    if len(days) > _MOST:
        return ""
    shown = listed(str(day) for day in sorted(days))
    return ngettext("on day {days} of the month", "on days {days} of the month", len(days), days=shown)


def _months(months: Collection[int]) -> str:
    if len(months) == 12:
        return _("every month")
    return listed(MONTHS[month - 1] for month in sorted(months)) if len(months) <= _MOST else ""
