"""What a budget means: its month, its lines, its course and its sentences."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from grid.queue.gate import words_of
from grid.usage.budgets.rules import (
    Budget,
    beginning,
    coming_stop_sentence,
    month_of,
    next_month,
    pace_began,
    reason_of,
    refused_sentence,
    spent_by_end,
    stop_sentence,
    used_up_at,
    warning_sentence,
)
from tests.support.golden import assert_golden

CHURN = Budget("churn", "Churn", Decimal(100))
MARCH = month_of(datetime(2026, 3, 4, tzinfo=UTC))
TENTH = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "month"),
    [
        ("2026-03-31T23:59:59+00:00", "2026-03-01"),
        ("2026-04-01T00:00:00+00:00", "2026-04-01"),
        ("2026-04-01T01:00:00+05:00", "2026-03-01"),
        ("2026-03-31T22:00:00-03:00", "2026-04-01"),
    ],
)
def test_month_is_that_of_utc_wherever_the_clock_is(moment: str, month: str) -> None:
    assert month_of(datetime.fromisoformat(moment)).isoformat() == month


@pytest.mark.parametrize(("month", "then"), [("2026-12-01", "2027-01-01"), ("2026-02-01", "2026-03-01")])
def test_month_is_followed_by_the_next(month: str, then: str) -> None:
    assert next_month(datetime.fromisoformat(month).date()).isoformat() == then


@pytest.mark.parametrize(
    ("spent", "is_near", "is_closed"),
    [("79.99", False, False), ("80", True, False), ("99.9999", True, False), ("100", True, True)],
)
def test_line_is_reached_by_the_cent(spent: str, is_near: bool, is_closed: bool) -> None:
    assert (CHURN.is_near(Decimal(spent)), CHURN.is_closed(Decimal(spent))) == (is_near, is_closed)
    half = Budget("c", "C", Decimal(50), 60, 90)
    assert half.is_closed(Decimal(spent) * Decimal("0.45")) == is_closed


def test_budgets_are_worded_as_stored() -> None:
    early = replace(CHURN, warning_percent=50, stop_percent=90)
    at_end = reason_of(CHURN, Decimal("100.404"), MARCH, owner="alice")
    reason = reason_of(early, Decimal(91), MARCH, owner="")
    assert (reason.code, reason.until) == ("over_budget", beginning(next_month(MARCH)))
    stopping = replace(CHURN, stops_running=True)
    words = {
        "refused": refused_sentence(at_end.values),
        "refused early, without an owner": refused_sentence(reason.values),
        "refused early, while it waits": words_of(reason),
        "near": warning_sentence(CHURN, Decimal(81), MARCH),
        "reached, and running executions stop": stop_sentence(stopping, Decimal(101), MARCH),
        "reached, of an execution that stops": coming_stop_sentence(stopping, Decimal(101), MARCH, TENTH),
    }
    assert_golden("words-of-budgets", "\n".join(f"> {when}\n{text}" for when, text in words.items()), ending="txt")


def test_course_follows_the_last_seven_days_of_the_month() -> None:
    assert pace_began(TENTH) == datetime(2026, 3, 4, tzinfo=UTC)
    assert pace_began(TENTH.replace(day=3)) == beginning(MARCH)
    # 65 in six and a half days are 10 a day: 30 are left for three days.
    assert used_up_at(CHURN, Decimal(70), Decimal(65), TENTH) == TENTH + timedelta(days=3)
    assert spent_by_end(Decimal(70), Decimal(65), TENTH) == pytest.approx(Decimal(285))
    assert used_up_at(CHURN, Decimal(10), Decimal(1), TENTH) is None, "it lasts"
    assert used_up_at(CHURN, Decimal(10), Decimal("1e-8"), TENTH) is None, "it lasts longer than there are dates"


def test_course_is_unknown_early_and_while_nothing_is_spent() -> None:
    early = beginning(MARCH) + timedelta(hours=5)
    assert used_up_at(CHURN, Decimal(90), Decimal(90), early) is None
    assert spent_by_end(Decimal(90), Decimal(90), early) is None
    assert used_up_at(CHURN, Decimal(90), Decimal(0), TENTH) is None
    assert used_up_at(CHURN, Decimal(100), Decimal(9), TENTH) is None, "it is used up already"
