"""Execution of many stories in turns, one change at a time. Pure but for the changes of the stories."""

import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)

Story = Iterator[float]


class Teller:
    """A queue of stories. `clock` is in seconds. A story that yields a number continues after so many seconds, in its turn."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ready: deque[Story] = deque()
        self._waiting: list[tuple[float, int, Story]] = []
        self._order = itertools.count()

    @property
    def open(self) -> int:
        """The number of stories that could continue now."""
        return len(self._ready)

    def add(self, story: Story, *, after: float = 0.0) -> None:
        if after <= 0:
            self._ready.append(story)
        else:
            heapq.heappush(self._waiting, (self._clock() + after, next(self._order), story))

    def tell(self) -> bool:
        """Execute the next step of the story in turn; a failing story is logged and dropped. Return False when none is due."""
        while self._waiting and self._waiting[0][0] <= self._clock():
            self._ready.append(heapq.heappop(self._waiting)[2])
        if not self._ready:
            return False
        story = self._ready.popleft()
        try:
            self.add(story, after=next(story))
        except StopIteration:
            pass
        except Exception:
            log.exception("a story of the population failed; the others go on")
        return True
