"""Times of schedules, against a walk over every minute; what is refused, what an outage leaves, and the plain words."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from grid.core.errors import Rejected
from grid.jobs.scheduletimes import CronTimetable, cron_words, due_times, read_timetable
from tests.support.golden import assert_golden

NOW = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
# Days on which clocks are set, by an hour, by half an hour, and at midnight.
CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "America/Santiago": ("2026-04-05", "2026-09-06"),
    "Asia/Kathmandu": ("2026-05-01",),
    "UTC": ("2026-02-28",),
}
FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def read(cron: str, zone: str = "UTC") -> CronTimetable:
    return read_timetable(cron, zone, NOW)


def shown(moments: list[datetime], zone: str) -> list[str]:
    return [moment.astimezone(ZoneInfo(zone)).strftime("%d %H:%M %Z") for moment in moments]


@st.composite
def fields(draw: st.DrawFn, least: int, most: int) -> tuple[str, set[int]]:
    """A field of a schedule, and its values."""
    numbers = st.integers(least, most)
    shape = draw(st.sampled_from(["all", "all", "step", "list", "range"]))
    if shape == "all":
        return "*", set(range(least, most + 1))
    if shape == "step":
        step = draw(st.integers(1, 20))
        return f"*/{step}", set(range(least, most + 1, step))
    if shape == "list":
        chosen = draw(st.lists(numbers, min_size=1, max_size=4))
        return ",".join(map(str, chosen)), set(chosen)
    low, high = sorted((draw(numbers), draw(numbers)))
    return f"{low}-{high}", set(range(low, high + 1))


def walked(
    values: list[set[int]], texts: list[str], zone: ZoneInfo, after: datetime, until: datetime
) -> list[datetime]:
    """The times after one moment and up to another, by looking at every minute that the clocks show or skip."""
    minutes, hours, days, months, weekdays = values
    either = not any(texts[place] in ("*", "*/1") for place in (2, 4))

    def fits(wall: datetime) -> bool:
        by_month, by_week = wall.day in days, wall.isoweekday() % 7 in weekdays
        is_day = by_month or by_week if either else by_month and by_week
        return is_day and wall.minute in minutes and wall.hour in hours and wall.month in months

    moments = []
    moment = after + MINUTE
    before = after.astimezone(zone).replace(tzinfo=None)
    while moment <= until:
        local = moment.astimezone(zone)
        wall = local.replace(tzinfo=None)
        if len(hours) == 24:
            is_due = fits(wall)
        else:
            skipped = (before + step * MINUTE for step in range(1, int((wall - before) / MINUTE)))
            is_due = (not local.fold and fits(wall)) or any(fits(minute) for minute in skipped)
        if is_due:
            moments.append(moment)
        before, moment = wall, moment + MINUTE
    return moments


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_times_are_those_of_a_walk_over_every_minute(data: st.DataObject) -> None:
    drawn = [data.draw(fields(*bounds)) for bounds in FIELDS]
    texts, values = [text for text, _ in drawn], [some for _, some in drawn]
    name = data.draw(st.sampled_from(sorted(CHANGES)))
    day = at(data.draw(st.sampled_from(CHANGES[name])))
    after = day + timedelta(minutes=data.draw(st.integers(-2000, 1500)))
    until = after + timedelta(days=2)
    zone = ZoneInfo(name)
    expected = walked(values, texts, zone, after, until)
    try:
        timetable = read(" ".join(texts), name)
    except Rejected as refused:
        assert refused.problems[0].code == "never" and expected == []
        return
    moments = [moment for moment in timetable.following(after, 60) if moment <= until]
    assert moments == expected[:60]
    assert timetable.last(after + MINUTE, until) == (expected[-1] if expected else None)


@pytest.mark.parametrize(
    ("cron", "zone", "after", "times"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["29 03:00 CEST", "30 02:30 CEST"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["25 02:30 CEST", "26 02:30 CET"]),
        ("30 * * * *", "Europe/Berlin", "2026-03-29T00:00", ["29 01:30 CET", "29 03:30 CEST"]),
        ("30 * * * *", "Europe/Berlin", "2026-10-25T00:00", ["25 02:30 CEST", "25 02:30 CET"]),
        ("0 0 * * *", "America/Santiago", "2026-09-05T12:00", ["06 01:00 -03", "07 00:00 -03"]),
    ],
)
def test_times_where_clocks_are_set(cron: str, zone: str, after: str, times: list[str]) -> None:
    assert shown(read(cron, zone).following(at(after), 2), zone) == times


def test_last_time_of_years_is_found_without_iteration() -> None:
    timetable = read("* * * * *")
    assert timetable.last(NOW, NOW + timedelta(days=3000)) == NOW + timedelta(days=3000)
    assert read("0 0 29 2 *").last(NOW, NOW + timedelta(days=3000)) == at("2032-02-29")
    assert read("0 0 1 1 *").last(NOW, NOW + timedelta(days=1)) is None


@pytest.mark.parametrize(
    ("late", "runs_missed", "run", "missed"),
    [
        (timedelta(minutes=5), False, "09:00", None),
        (timedelta(minutes=6), False, None, ("09:00", "09:00")),
        (timedelta(minutes=6), True, "09:00", None),
        (timedelta(hours=3, minutes=1), False, "12:00", ("09:00", "11:00")),
        (timedelta(hours=3, minutes=30), False, None, ("09:00", "12:00")),
        (timedelta(hours=3, minutes=30), True, "12:00", ("09:00", "11:00")),
        (-MINUTE, True, None, None),
    ],
)
def test_outage_is_made_up_once_or_never(
    late: timedelta, runs_missed: bool, run: str | None, missed: tuple[str, str] | None
) -> None:
    due = due_times(read("0 * * * *"), NOW, NOW + late, runs_missed=runs_missed)
    assert (f"{due.run:%H:%M}" if due.run else None) == run
    assert (tuple(f"{moment:%H:%M}" for moment in due.missed) if due.missed else None) == missed


INTERVALS = ["* * * * *", "*/15 * * * *", "*/7 * * * *", "@hourly", "5 * * * 1-5"]
TIMES = ["30 6,18 * * *", "0 6 * * MON-fri", "0 0 1,15 1,7 *", "0 0 13 * 5", "0 0 1-31 * 5", "0 0-11 * * *"]
INVALID = [
    "",
    "0 0 30 2 *",
    "0 0 * *",
    "60 * * * *",
    "*/0 * * * *",
    ", * * * *",
    "@every 1s",
    "*" * 101,
    "0 0 * * \u0661",
]


def test_schedules_have_plain_words_or_are_refused() -> None:
    blocks = [f"> {cron}\nwords: {cron_words(read(cron).cron)}" for cron in (*INTERVALS, *TIMES)]
    for cron in INVALID:
        with pytest.raises(Rejected) as refused:
            read(cron)
        (problem,) = refused.value.problems
        blocks.append(f"> {cron}\n{problem.path} {problem.code}: {problem.message}")
    assert_golden("words-of-schedules", "\n".join(blocks), ending="txt")


@given(st.text(max_size=120), st.text(max_size=40))
def test_any_text_is_read_or_refused_at_a_field(cron: str, zone: str) -> None:
    try:
        assert read(cron, zone).next(NOW)
    except Rejected as refused:
        assert {problem.path for problem in refused.problems} <= {"cron", "time_zone"}


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../etc/passwd", "UTC\0", "Europe", "a" * 5000])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(Rejected) as refused:
        read("0 0 * * *", zone)
    assert [problem.path for problem in refused.value.problems] == ["time_zone"]
