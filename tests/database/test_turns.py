"""Turns: between two services of one person, everybody else with something due is served once."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from grid.database.turns import LONGEST_REST_SECONDS, PersonTurns, RateLimit, rest_after
from tests.support.virtual import loop_time, virtual_time

NOW = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
PEOPLE = st.sampled_from("abcde")
DUE = st.lists(PEOPLE, max_size=40)


def numbered(people: list[str]) -> list[tuple[str, int]]:
    return [(person, number) for number, person in enumerate(people)]


@given(DUE)
def test_items_are_served_once_and_in_order_per_person(people: list[str]) -> None:
    due = numbered(people)
    served = list(PersonTurns[str]().each(due))
    assert sorted(served, key=lambda pair: pair[1]) == due
    for person in set(people):
        own = [number for name, number in served if name == person]
        assert own == sorted(own)


@given(st.lists(st.tuples(DUE, st.integers(1, 7)), max_size=12))
def test_waiting_people_are_served_before_anyone_is_served_twice(looks: list[tuple[list[str], int]]) -> None:
    """At each look something new is due, and only so much is served."""
    turns, due = PersonTurns[str](), list[tuple[str, int]]()
    waits_since: dict[str, Counter[str]] = {}  # of who waits: how often each other was served meanwhile
    for people, at_most in looks:
        due += [(person, len(due) + place) for place, person in enumerate(people)]
        for person in people:
            waits_since.setdefault(person, Counter())
        served = turns.each(list(due))
        for _ in range(min(at_most, len(due))):
            person, item = next(served)
            due.remove((person, item))
            for other, services in waits_since.items():
                if other != person:
                    services[person] += 1
                    assert services[person] <= 1, f"{person} was served twice while {other} waited"
            del waits_since[person]
            if any(name == person for name, _ in due):
                waits_since[person] = Counter()


@virtual_time
async def test_rest_after_item_equals_its_duration_or_more() -> None:
    began: list[tuple[str, float]] = []

    async def work(name: str) -> None:
        began.append((name, loop_time()))
        await asyncio.sleep(0.1)

    done = await PersonTurns[str]().serve([("a", "a"), ("a", "b"), ("a", "c"), ("b", "d")], work, at_most=3)
    assert done == [("a", "a"), ("b", "d"), ("a", "b")]
    assert [name for name, _ in began] == ["a", "d", "b"]
    assert [at for _, at in began] == pytest.approx([0.0, 0.2, 0.4])
    assert loop_time() == pytest.approx(2.4)
    assert rest_after(10.0, 2) == LONGEST_REST_SECONDS


def test_rate_is_counted_in_its_window_without_future_times() -> None:
    limit = RateLimit[str](timedelta(minutes=1))
    for seconds in (0, 30, 59):
        limit.add("a", NOW + timedelta(seconds=seconds))
    assert [limit.count("a", NOW + timedelta(seconds=seconds)) for seconds in (59, 60, 100)] == [3, 2, 1]
    assert limit.count("b", NOW) == 0
    assert limit.count("a", NOW) == 0  # the clock was set back
