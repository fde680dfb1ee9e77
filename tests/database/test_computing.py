"""How many threads of a pool compute at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from grid.database.computing import give_up_permit, with_permit


def test_work_waits_for_a_permit_that_another_gives_up_before_its_end() -> None:
    permits, gives_up, ends = threading.Semaphore(1), threading.Event(), threading.Event()

    def waiting() -> str:
        assert gives_up.wait(10)
        give_up_permit()
        assert ends.wait(10)
        return "first"

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(with_permit, permits, waiting)
        second = threads.submit(with_permit, permits, lambda: "second")
        with pytest.raises(TimeoutError):
            second.result(timeout=0.2)
        gives_up.set()
        assert second.result(timeout=10) == "second"
        ends.set()
        assert first.result(timeout=10) == "first"
    assert permits.acquire(blocking=False), "it was given back once"
    assert not permits.acquire(blocking=False), "and only once"


def test_permit_is_given_back_by_work_that_fails() -> None:
    permits = threading.Semaphore(1)
    with pytest.raises(ZeroDivisionError):
        with_permit(permits, lambda: 1 // 0)
    assert with_permit(permits, lambda: "next") == "next"
