"""Lets few threads of a pool compute at a time.

Only one thread computes in Python at once, and each that would like to wakes up every `SWITCH_SECONDS` to ask for its turn: with 24 such
threads a launch took 28 ms of the processor on PostgreSQL, with six 19. So work begins with one of few permits. Who is about to wait for
long gives its permit up and does the rest without: were it taken again, whoever has the others might wait for what this thread holds.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class _Thread(threading.local):
    permit: threading.Semaphore | None = None  # that this thread has now


_own = _Thread()


def with_permit(permits: threading.Semaphore, work: Callable[[], T]) -> T:
    """Do the work as soon as there is a permit."""
    permits.acquire()
    _own.permit = permits
    try:
        return work()
    finally:
        give_up_permit()


def give_up_permit() -> None:
    """Let other work begin while this thread does the rest of its own; do nothing in a thread that has no permit."""
    permit, _own.permit = _own.permit, None
    if permit is not None:
        permit.release()
