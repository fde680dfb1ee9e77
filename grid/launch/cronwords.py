"""Says in plain words when a schedule is due. Pure. The words come from what was parsed, so every notation of a time has the same."""

from collections.abc import Collection, Sequence

from grid.cron import CronFields
from grid.wording import listed

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_MOST = 4  # names or times in a sentence; more are easier to read in the next times


def cron_words(cron: CronFields) -> str:
    """Return words such as "Monday to Friday at 06:00"; "" when they would be longer than the text is worth."""
    time, days, months = _times(cron), _days(cron), _months(cron.months)
    if not (time and days and months):
        return ""
    if time.startswith("at "):
        words = f"{days} {time}" if months == "every month" else f"{days} in {months} {time}"
    else:
        parts = [time, *([] if days == "every day" else [days]), *([] if months == "every month" else [f"in {months}"])]
        words = ", ".join(parts)
    return words[:1].upper() + words[1:]


def _times(cron: CronFields) -> str:
    minutes, hours = sorted(cron.minutes), sorted(cron.hours)
    if len(hours) < 24:
        if len(minutes) * len(hours) > _MOST:
            return ""
        return f"at {listed(f'{hour:02}:{minute:02}' for hour in hours for minute in minutes)}"
    if len(minutes) == 60:
        return "every minute"
    if minutes == [0]:
        return "every hour, on the hour"
    if len(minutes) == 1:
        return f"every hour, {minutes[0]} {'minute' if minutes[0] == 1 else 'minutes'} past"
    step = minutes[1] - minutes[0]
    return f"every {step} minutes" if 60 % step == 0 and minutes == list(range(0, 60, step)) else ""


def _days(cron: CronFields) -> str:
    is_any_day, is_any_weekday = len(cron.days) == 31, len(cron.weekdays) == 7
    # When both are restricted either is enough, so one that holds every day decides.
    if (is_any_day and is_any_weekday) or (cron.either_day and (is_any_day or is_any_weekday)):
        return "every day"
    by_week = "" if is_any_weekday else _weekdays(cron.weekdays)
    by_month = "" if is_any_day else _days_of_month(cron.days)
    if (not is_any_day and not by_month) or (not is_any_weekday and not by_week):
        return ""
    return " and ".join(filter(None, (by_month, by_week)))


def _weekdays(days: Collection[int]) -> str:
    in_order: Sequence[int] = sorted(days, key=lambda day: (day - 1) % 7)
    if in_order == [1, 2, 3, 4, 5]:
        return "Monday to Friday"
    return f"every {listed(_DAYS[day] for day in in_order)}" if len(in_order) <= _MOST else ""


def _days_of_month(days: Collection[int]) -> str:
    if len(days) > _MOST:
        return ""
    return f"on {'day' if len(days) == 1 else 'days'} {listed(str(day) for day in sorted(days))} of the month"


def _months(months: Collection[int]) -> str:
    if len(months) == 12:
        return "every month"
    return listed(_MONTHS[month - 1] for month in sorted(months)) if len(months) <= _MOST else ""
