"""How many things are open, for each key that somebody has any of."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class Counts:
    """A key with nothing open takes no memory."""

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
