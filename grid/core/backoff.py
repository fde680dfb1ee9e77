"""Exponential back-off with jitter, reset on success."""

import random


class Backoff:
    """Delays that double from `first` to `longest`; each is drawn from its upper half, so that clients do not retry at the same time."""

    def __init__(self, *, first: float = 0.5, longest: float = 15.0, rng: random.Random) -> None:
        self._first, self._longest = first, longest
        self._rng = rng
        self._failures = 0

    def next(self) -> float:
        whole = min(self._longest, self._first * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return whole * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._failures = 0
