"""The base classes of the embedded cluster's controllers: client, mirrors, events and work queue."""

import random
from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar

from grid.core.backoff import Backoff
from grid.core.workqueue import WorkQueue
from grid.sandbox.client import Api, Clock, EventRecorder, Mirrors, SystemClock
from grid.sandbox.controllers.workoff import work_off

_FIRST_RETRY, _LONGEST_RETRY = 0.1, 60.0


class EmbeddedController(ABC):
    """A client of the API server with mirrors, its own or shared ones. `component` is its name in events."""

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
        """Subscribe to the mirrors and create the state; called when the constructor has set all else."""

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled."""


class QueueController(EmbeddedController):
    """A controller that enqueues the keys of what changed, and reconciles them. `name` is for the log."""

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
        """Bring one object nearer to its spec. Return the seconds until the next reconciliation, or None to wait for a change."""
