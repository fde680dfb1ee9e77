"""Says in plain words when a schedule is due. Pure. The words come from what was parsed, so every notation of a time has the same."""

from collections.abc import Collection, Sequence

from grid.core.cron import CronFields
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import MONTHS, listed

_DAYS = (_("Sunday"), _("Monday"), _("Tuesday"), _("Wednesday"), _("Thursday"), _("Friday"), _("Saturday"))
_MOST = 4  # names or times in a sentence; more are easier to read in the next times


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
