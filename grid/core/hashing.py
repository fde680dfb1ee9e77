"""Limits how many passwords are hashed at once, so that password guessing slows other people's pages little.

Hashing is slow on purpose: some 0.3 s of one core for each password. Without a limit, thirty guessing clients take every core.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class TooBusy(Exception):
    """Too many passwords wait to be checked; try again in some seconds."""


class HashingQueue:
    """Lets one thread at a time hash; at most `places` threads wait or hash at once, `places_per_address` of them for one address. The
    second bound keeps places for other people when one address asks for all of them. Nobody waits longer than `seconds`."""

    def __init__(self, *, places: int = 16, places_per_address: int = 4, seconds: float = 10.0) -> None:
        self._places, self._places_per_address, self._seconds = places, places_per_address, seconds
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()
        self._hashing = threading.Lock()

    @contextmanager
    def turn(self, address: str) -> Iterator[None]:
        """Hash within this context. Raise TooBusy when there is no place, or no turn in time."""
        with self._lock:
            if self._taken.total() >= self._places or self._taken[address] >= self._places_per_address:
                raise TooBusy
            self._taken[address] += 1
        try:
            if not self._hashing.acquire(timeout=self._seconds):
                raise TooBusy
            try:
                yield
            finally:
                self._hashing.release()
        finally:
            with self._lock:
                self._taken[address] -= 1
                if not self._taken[address]:
                    del self._taken[address]


hashing_queue = HashingQueue()  # one per process
