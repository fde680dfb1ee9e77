"""The queue's promises: merging, one hand at a time, nothing lost."""

import random

import pytest

from grid.core.backoff import Backoff
from grid.core.workqueue import WorkQueue
from tests.support.virtual import passes, virtual_time


def queue_of() -> WorkQueue:
    rng = random.Random(0)
    return WorkQueue(lambda: Backoff(first=2, longest=16, rng=rng))


@virtual_time
async def test_key_added_twice_is_taken_once_in_order() -> None:
    queue = queue_of()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    queue.done("a")
    queue.done("b")
    assert len(queue) == 0


@virtual_time
async def test_key_added_while_worked_on_comes_again() -> None:
    queue = queue_of()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b", "nobody else gets the one in hand"
    queue.done("a")
    assert await queue.get() == "a"


@virtual_time
@pytest.mark.parametrize("delays", [(5, 1), (1, 5), (3, 1, 5, 1)])
async def test_a_delayed_key_comes_once_after_its_shortest_delay(delays: tuple[int, ...]) -> None:
    queue = queue_of()
    for delay in delays:
        queue.add_later("a", delay)
    await passes(0.9)
    assert len(queue) == 0
    await passes(0.2)
    assert await queue.get() == "a"
    queue.done("a")
    await passes(10)
    assert len(queue) == 0


@virtual_time
async def test_delayed_keys_come_in_the_order_of_their_delays() -> None:
    queue = queue_of()
    for key, delay in (("c", 3), ("a", 1), ("b", 2)):
        queue.add_later(key, delay)
    await passes(1.5)
    queue.add_later("d", 10)
    queue.add_later("e", 1)
    await passes(2)
    assert [await queue.get() for _ in range(4)] == ["a", "b", "e", "c"]


@virtual_time
async def test_failing_key_is_delayed_longer_until_success() -> None:
    queue = queue_of()
    delays = [queue.retry("a") for _ in range(3)]
    assert [1 <= delays[0] <= 2, 2 <= delays[1] <= 4, 4 <= delays[2] <= 8] == [True] * 3
    queue.succeeded("a")
    assert 1 <= queue.retry("a") <= 2
    assert queue.retry("b", at_least=7) == 7


@virtual_time
async def test_first_failure_waits_no_longer_than_back_off() -> None:
    queue = WorkQueue(lambda: Backoff(first=0.2, longest=16, rng=random.Random(0)))
    queue.succeeded("a")
    assert 0.1 <= queue.retry("a") <= 0.2


@virtual_time
async def test_failure_is_retried_soon_despite_a_distant_timer() -> None:
    queue = queue_of()
    queue.add_later("a", 1200)
    queue.retry("a")
    await passes(2.1)
    assert await queue.get() == "a"


@virtual_time
async def test_a_closed_queue_gets_no_delayed_keys() -> None:
    queue = queue_of()
    queue.add_later("a", 1)
    queue.close()
    queue.add_later("b", 1)
    await passes(2)
    assert len(queue) == 0
