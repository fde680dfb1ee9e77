"""Counts of open things by key."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class Counts:
    """A counter by key; a key whose count is 0 takes no memory."""

    def __init__(self) -> None:
        self._open: dict[Hashable, int] = {}

    def __getitem__(self, key: Hashable) -> int:
        return self._open.get(key, 0)

    def add(self, key: Hashable) -> None:
        self._open[key] = self[key] + 1

    def remove(self, key: Hashable) -> None:
        left = self[key] - 1
        if left > 0:
            self._open[key] = left
        else:
            self._open.pop(key, None)

    @contextmanager
    def held(self, *keys: Hashable) -> Iterator[None]:
        for key in keys:
            self.add(key)
        try:
            yield
        finally:
            for key in keys:
                self.remove(key)
