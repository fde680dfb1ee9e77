"""The queue's promises: merging, one hand at a time, nothing lost."""

from grid.launch.workqueue import WorkQueue
from tests.support.virtual import passes, virtual_time


@virtual_time
async def test_a_key_added_twice_is_taken_once_and_in_order() -> None:
    queue = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    queue.done("a")
    queue.done("b")
    assert len(queue) == 0


@virtual_time
async def test_a_key_added_while_it_is_worked_on_comes_again_afterwards() -> None:
    queue = WorkQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b", "nobody else gets the one in hand"
    queue.done("a")
    assert await queue.get() == "a"


@virtual_time
async def test_a_delayed_key_comes_once_after_the_first_delay() -> None:
    queue = WorkQueue()
    queue.add_later("a", 5)
    queue.add_later("a", 1)
    await passes(4.9)
    assert len(queue) == 0
    await passes(0.2)
    assert await queue.get() == "a"
    queue.done("a")
    await passes(10)
    assert len(queue) == 0


@virtual_time
async def test_a_closed_queue_gets_no_delayed_keys() -> None:
    queue = WorkQueue()
    queue.add_later("a", 1)
    queue.close()
    await passes(2)
    assert len(queue) == 0
