"""Which placeholders are wanted when, also where clocks are set."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from grid.executions.spec import TierSpec
from grid.tiers.warmhours import DAYS, WarmHours, WarmTier, wanted

BERLIN = ZoneInfo("Europe/Berlin")
WORKDAYS = frozenset(DAYS[:5])


def hours(begins: str, ends: str, days: frozenset[str] = WORKDAYS, zone: ZoneInfo = BERLIN) -> WarmHours:
    return WarmHours(days, time.fromisoformat(begins), time.fromisoformat(ends), zone)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("begins", "ends", "now", "until"),
    [  # 2026-11-26 is a Thursday; Berlin is an hour ahead of UTC
        ("08:00", "18:00", "2026-11-26T06:59", None),
        ("08:00", "18:00", "2026-11-26T07:00", "2026-11-26T17:00"),
        ("08:00", "18:00", "2026-11-26T17:00", None),
        ("08:00", "18:00", "2026-11-28T12:00", None),  # a Saturday
        ("22:00", "06:00", "2026-11-28T04:59", "2026-11-28T05:00"),  # begins on Friday
        ("22:00", "06:00", "2026-11-28T22:00", None),
        ("00:00", "00:00", "2026-11-26T12:00", "2026-11-26T23:00"),  # a whole day
    ],
)
def test_warm_hours_belong_to_their_starting_day(begins: str, ends: str, now: str, until: str | None) -> None:
    assert hours(begins, ends).until(moment(now)) == (moment(until) if until else None)


@pytest.mark.parametrize(
    ("begins", "ends", "warm", "cold"),
    [
        # 2026-03-29: 02:00 to 03:00 is skipped; 02:30 is 01:30 UTC, as it is by the clock before.
        ("02:30", "08:00", ["2026-03-29T01:30", "2026-03-29T05:59"], ["2026-03-29T01:29", "2026-03-29T06:00"]),
        ("01:00", "02:30", ["2026-03-29T00:00", "2026-03-29T01:29"], ["2026-03-29T01:30"]),
        # 2026-10-25: 02:00 to 03:00 comes twice; the first counts.
        ("02:30", "08:00", ["2026-10-25T00:30", "2026-10-25T06:59"], ["2026-10-25T00:29", "2026-10-25T07:00"]),
        ("01:00", "02:30", ["2026-10-25T00:29"], ["2026-10-25T00:30", "2026-10-25T01:15"]),
        # Over the night of the change the wall's clock holds.
        ("22:00", "06:00", ["2026-03-28T21:00", "2026-03-29T03:59"], ["2026-03-28T20:59", "2026-03-29T04:00"]),
    ],
)
def test_hours_follow_the_clock_on_the_wall(begins: str, ends: str, warm: list[str], cold: list[str]) -> None:
    every_day = hours(begins, ends, frozenset(DAYS))
    assert all(every_day.until(moment(text)) is not None for text in warm)
    assert all(every_day.until(moment(text)) is None for text in cold)


def warm_tier(id: str, places: int, begins: str = "08:00") -> WarmTier:
    tier = TierSpec(id=id, name=id, node_pool="default", cores="1", cores_limit="1", memory="1Gi", memory_limit="1Gi")
    return WarmTier(tier, places, hours(begins, "18:00"))


@pytest.mark.parametrize(
    ("most", "expected"), [(0, []), (3, [("a", 1), ("b", 1), ("a", 2)]), (9, [("a", 1), ("b", 1), ("a", 2), ("a", 3)])]
)
def test_placeholders_are_limited_and_tiers_take_turns(most: int, expected: list[tuple[str, int]]) -> None:
    tiers = [warm_tier("b", 1), warm_tier("a", 3), warm_tier("later", 2, begins="15:00")]
    due = wanted(tiers, most, moment("2026-11-26T12:00"))
    assert [(placeholder.warm.tier.id, placeholder.number) for placeholder in due] == expected


@pytest.mark.parametrize(
    ("on", "now", "begins", "ends"),
    [  # 2026-11-26 is a Thursday; Berlin is an hour ahead of UTC
        (None, "2026-11-26T06:39", "2026-11-26T06:40", "2026-11-26T17:00"),
        (None, "2026-11-27T17:00", "2026-11-30T06:40", "2026-11-30T17:00"),
        (date(2027, 1, 2), "2026-11-26T06:39", "2027-01-02T06:40", "2027-01-02T17:00"),  # a Saturday
        (date(2026, 11, 26), "2026-11-26T17:00", None, None),
        (date(2027, 3, 28), "2026-11-26T17:00", "2027-03-28T05:40", "2027-03-28T16:00"),  # the first day of summer time
    ],
)
def test_the_next_run_begins_early(on: date | None, now: str, begins: str | None, ends: str | None) -> None:
    days = frozenset[str]() if on else WORKDAYS
    asked = WarmHours(days, time(8), time(18), BERLIN, on, timedelta(minutes=20))
    run = asked.next_run(moment(now))
    assert run == ((moment(begins), moment(ends)) if begins and ends else None)
    if run is not None:
        assert asked.until(run[0]) == run[1]
        assert asked.until(run[0] - timedelta(seconds=1)) is None and asked.until(run[1]) is None


def test_hours_after_midnight_may_begin_the_day_before() -> None:
    asked = WarmHours(WORKDAYS, time(0, 10), time(8), BERLIN, early=timedelta(minutes=30))
    assert asked.until(moment("2026-11-25T22:40")) == moment("2026-11-26T07:00")
    assert asked.until(moment("2026-11-25T22:39")) is None
