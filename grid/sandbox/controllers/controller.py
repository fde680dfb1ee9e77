"""What the embedded cluster's controllers have in common: whom they ask, what they see, and how they work off what changed."""

import random
from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar

from grid.backoff import Backoff
from grid.sandbox.client import Api, Clock, EventRecorder, Mirrors, SystemClock
from grid.sandbox.controllers.workoff import work_off
from grid.workqueue import WorkQueue

_FIRST_RETRY, _LONGEST_RETRY = 0.1, 60.0


class EmbeddedController(ABC):
    """A client of the API server with mirrors, its own or shared ones. `component` is the name under which it writes events."""

    component: ClassVar[str]

    def __init__(
        self,
        client: Api,
        *,
        clock: Clock | None = None,
        mirrors: Mirrors | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._rng = rng
        self._mirrors = mirrors or Mirrors(client, clock=self._clock, rng=rng)
        self._events = EventRecorder(client, self.component, clock=self._clock)
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Subscribe to the mirrors, and make what is remembered; all that the constructor was given is there."""

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled."""


class QueueController(EmbeddedController):
    """A controller that enqueues the keys of what changed, and reconciles one after the other. `name` is for the log."""

    name: ClassVar[str]
    workers: ClassVar[int] = 4

    @cached_property
    def _queue(self) -> WorkQueue:
        rng = self._rng or random.Random()
        return WorkQueue(lambda: Backoff(first=_FIRST_RETRY, longest=_LONGEST_RETRY, rng=rng), self._clock)

    async def run(self) -> None:
        async with self._mirrors.running():
            await work_off(self._queue, self._reconcile, name=self.name, workers=self.workers)

    @abstractmethod
    async def _reconcile(self, key: str) -> float | None:
        """Bring one object nearer to what it asks for. Return after how many seconds to look at it again, None for its next change."""
