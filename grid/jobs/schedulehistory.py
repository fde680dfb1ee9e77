"""What has happened to a schedule, as codes and values that are worded when somebody reads them; pure."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from grid.core.cron import find_zone
from grid.core.reasons import ANYBODY, Reader, Reason, Sentence, Values, cause_words, filled, words_of
from grid.core.translation import gettext as _, ngettext

KEPT = 20  # entries of a schedule


@dataclass(frozen=True, slots=True)
class LateReason:
    """How many other schedules of the owner, and of others, were due at once; `most_a_minute` is the owner's limit if reached, else 0."""

    of_owner: int = 0
    of_others: int = 0
    most_a_minute: int = 0

    def values(self, owner: str) -> dict[str, Any]:
        return asdict(self) | {"owner": owner}


def late_words(values: Values) -> str:
    """Return why a schedule was late, of `LateReason.values`, as a sentence; "" when nothing else was due."""
    if values["most_a_minute"]:
        sentence = _(
            "Schedules of {owner} have asked for {most:,} runs within a minute, and no more may be; an admin can change that."
        )
        return sentence.format(owner=values["owner"], most=values["most_a_minute"])
    if values["of_owner"]:
        return ngettext(
            "{count:,} other schedule of {owner} was due at once.",
            "{count:,} other schedules of {owner} were due at once.",
            values["of_owner"],
            owner=values["owner"],
        )
    if values["of_others"]:
        return ngettext(
            "{count:,} schedule of other people was due at once.",
            "{count:,} schedules of other people were due at once.",
            values["of_others"],
        )
    return ""


def noted(history: list[list[Any]], now: datetime, reason: Reason) -> list[list[Any]]:
    """Return the history with another entry: its time, code and values. One of before codes is its time and a text."""
    return [[now.isoformat(), reason.code, dict(reason.values)], *history][:KEPT]


def entry_words(entry: list[Any]) -> tuple[datetime, str]:
    """Return when an entry was written, and its sentence."""
    at, code, *values = entry
    return datetime.fromisoformat(at), words_of(code, values[0], "", ANYBODY) if values else code


def time_words(name: str = "due") -> Sentence:
    """Word the time with this name by the clocks of the schedule's time zone."""

    def words(values: Values, reader: Reader) -> str:
        try:
            zone = find_zone(values["zone"])
        except ValueError:  # this system does not know it any more
            zone = ZoneInfo("UTC")
        return f"{datetime.fromisoformat(values[name]).astimezone(zone):%-d %b %H:%M}"

    return words


def _missed(values: Values, reader: Reader) -> str:
    is_one = values["first"] == values["last"]
    until = "" if is_one else _(" to {last}", last=time_words("last")(values, reader))
    sentence = _("{first}{until} missed: it was not looked at in time. {late}")
    late = late_words(values["late"]) if values["late"] else ""
    return sentence.format(first=time_words("first")(values, reader), until=until, late=late).strip()


_PAUSED_BY, _PAUSED = filled(_("Paused by {by}.")), filled(_("Paused: {why}"), why=cause_words)
SENTENCES: dict[str, Sentence] = {
    "SchedulePaused": lambda values, reader: (_PAUSED_BY if values.get("by") else _PAUSED)(values, reader),
    "ScheduleResumed": filled(_("Resumed by {by}.")),
    "RunsNotStarted": filled(_("Its last {count} runs were not started. {why}"), why=cause_words),
    "TimeTaken": filled(_("{due} skipped: there is a run for that time already."), due=time_words()),
    "TimeBehindRun": filled(_("{due} skipped: run {number} had not ended."), due=time_words()),
    "TimeBehindRuns": filled(_("{due} skipped: {count} earlier runs had not ended."), due=time_words()),
    "TimeClosed": filled(_("{due} skipped: {why}"), due=time_words()),
    "TimeLate": filled(
        _("{due} asked for at {now}. {why}"),
        due=time_words(),
        now=time_words("now"),
        why=lambda values, reader: late_words(values["late"]),
    ),
    "TimeMissed": _missed,
    "RunReplaced": filled(_("{due} replaced run {earlier} by run {number}."), due=time_words()),
}
