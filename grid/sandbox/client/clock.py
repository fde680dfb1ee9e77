"""Time and back-off, injected so that tests run on virtual time."""

import asyncio
import random
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Backoff:
    """Growing delays with jitter: from `first` doubling to `longest`, each between half and the whole of it.

    Jitter keeps the clients of a server that comes back from asking all at once.
    """

    def __init__(self, *, first: float = 0.5, longest: float = 30.0, rng: random.Random | None = None) -> None:
        self._first = first
        self._longest = longest
        self._rng = rng or random.Random()
        self._next = first

    def delay(self) -> float:
        whole = self._next
        self._next = min(self._longest, self._next * 2)
        return whole * (0.5 + self._rng.random() / 2)

    def reset(self) -> None:
        self._next = self._first
