"""Passwords are hashed one at a time; who would have to wait too long is told so."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from grid.core.hashing import HashingQueue, TooBusy
from tests.support.waiting import wait_until


@contextmanager
def occupied(queue: HashingQueue, *addresses: str) -> Iterator[None]:
    """The first of these hashes, the others wait for their turns."""
    release = threading.Event()

    def hold(address: str) -> None:
        with queue.turn(address):
            release.wait()

    with ThreadPoolExecutor(len(addresses)) as threads:
        held = [threads.submit(hold, address) for address in addresses]
        try:
            wait_until(lambda: queue._taken.total() == len(addresses))
            yield
        finally:
            release.set()
    for turn in held:
        turn.result()


def is_refused(queue: HashingQueue, address: str) -> bool:
    try:
        with queue.turn(address):
            return False
    except TooBusy:
        return True


def test_password_hashes_run_one_at_a_time() -> None:
    queue, barrier = HashingQueue(), threading.Barrier(8)
    running = most = 0

    def hash_in_turn(number: int) -> None:
        nonlocal running, most
        barrier.wait()
        with queue.turn(f"10.0.0.{number}"):
            running += 1
            most = max(most, running)
            time.sleep(0.002)
            running -= 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(hash_in_turn, range(8)))
    assert (most, queue._taken.total()) == (1, 0)


def test_full_hashing_queue_refuses_and_recovers() -> None:
    queue = HashingQueue(places=3, places_per_address=1)
    with occupied(queue, "a", "b", "c"):
        assert is_refused(queue, "d")
    assert not is_refused(queue, "d")


def test_address_leaves_hashing_places_for_others() -> None:
    queue = HashingQueue(places=8, places_per_address=2)
    with occupied(queue, "a", "a", "b"):
        assert is_refused(queue, "a")
        assert queue._taken.total() == 3
    assert not is_refused(queue, "a")


def test_nobody_waits_longer_than_that() -> None:
    queue = HashingQueue(seconds=0.01)
    with occupied(queue, "a"):
        assert is_refused(queue, "b")


def test_an_error_gives_the_turn_back() -> None:
    queue = HashingQueue(places=1)
    with pytest.raises(ZeroDivisionError), queue.turn("a"):
        raise ZeroDivisionError
    assert not is_refused(queue, "a")
