"""Schedules: what is accepted, in which words others are refused, and when they are due."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from grid.core.cron import BadSchedule, find_zone, parse_schedule

_START = "2026-11-24T03:34:23"  # a Tuesday
_NEW_YORK = ZoneInfo("America/New_York")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        ("* * * * *", "2026-11-24T03:35:00"),
        ("*/15 * * * *", "2026-11-24T03:45:00"),
        ("10-20/5 * * * *", "2026-11-24T04:10:00"),
        ("0,30 22,4 * * *", "2026-11-24T04:00:00"),
        ("0 0 ? * ?", "2026-11-25T00:00:00"),
        ("0 12 * feb MON-fri", "2027-02-01T12:00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00"),
        ("@yearly", "2027-01-01T00:00:00"),
        ("@every 1h30m", "2026-11-24T05:04:23"),
        ("@every 10ms", "2026-11-24T03:34:24"),
    ],
)
def test_a_schedule_is_due_next(schedule: str, due: str) -> None:
    assert parse_schedule(schedule).next(moment(_START)) == moment(due)


def test_either_of_two_restricted_days_matches_and_steps_restrict() -> None:
    either = parse_schedule("0 0 13 * 5")
    assert either.next(moment(_START)) == moment("2026-11-27T00:00:00")
    assert either.next(moment("2026-12-11T00:00:00")) == moment("2026-12-13T00:00:00")
    assert parse_schedule("0 0 */2 * 2").next(moment("2026-11-30T00:00:00")) == moment("2026-12-01T00:00:00")
    assert parse_schedule("0 0 */2 * 2").next(moment("2026-12-01T00:00:00")) == moment("2026-12-03T00:00:00")
    assert parse_schedule("0 0 13 * *").next(moment("2026-12-11T00:00:00")) == moment("2026-12-13T00:00:00")


def test_impossible_schedule_ends_its_search() -> None:
    assert parse_schedule("0 0 31 2 *").next(moment(_START)) is None


def test_skipped_hour_is_not_due_and_repeated_hour_twice() -> None:
    nightly = parse_schedule("30 2 * * *")
    assert nightly.next(moment("2026-03-08T05:00:00"), _NEW_YORK) == moment("2026-03-09T06:30:00")
    early = parse_schedule("30 1 * * *")
    first = early.next(moment("2026-11-01T04:00:00"), _NEW_YORK)
    assert first == moment("2026-11-01T05:30:00")
    assert first is not None and early.next(first, _NEW_YORK) == moment("2026-11-01T06:30:00")


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("30-10 * * * *", "beginning of range (30) beyond end of range (10): 30-10"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("@noon", "unrecognized descriptor: @noon"),
    ],
)
def test_invalid_schedule_is_refused_in_words_of_kubernetes(schedule: str, problem: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        parse_schedule(schedule)
    assert str(refused.value) == problem


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "", "Europe/../Europe/Berlin"])
def test_a_zone_that_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="unknown time zone"):
        find_zone(name)
    assert find_zone("Europe/Berlin").key == "Europe/Berlin"
