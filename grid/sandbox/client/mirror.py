"""A cache of one resource, which controllers read instead of asking the server; `grid.kube` keeps it fresh.

Any code on the same loop may read a mirror. The objects that it returns are shared and must not be changed. Listeners are called at
once, in order, on the loop, with the old and the new object; they only enqueue keys.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from grid.core.labels import SIMULATED
from grid.kube.api import Followable
from grid.kube.hub import Hub
from grid.kube.listing import Timing
from grid.kube.reflector import ListWatch, Reflector
from grid.kube.resources import Resource
from grid.kube.store import Store
from grid.sandbox.client.clock import Clock, SystemClock
from grid.sandbox.client.objects import Object

# Nothing between a controller and its server cuts what is quiet, every kubelet has a watch of its own, and a streaming list costs a
# connection that is closed after it, with both its ends in the embedded cluster's process; so watches are long, and lists come in pages.
_TIMING = Timing(watch_seconds=(180, 300), relist_spread=0.0, failed_streams=0)


class _Identity(NamedTuple):
    key: str
    resource_version: str
    uid: str


class WholeObject(dict[str, Any]):
    """An object as JSON gives it, with the identity that its reflector reads."""

    __slots__ = ("metadata",)

    def __init__(self, raw: Object) -> None:
        super().__init__(raw)
        try:
            meta = raw["metadata"]
            key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
            self.metadata = _Identity(key, meta["resourceVersion"], meta.get("uid", ""))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the object has no usable metadata ({type(error).__name__})") from error


class Mirror(Store[WholeObject]):
    """A cache of one resource; `namespace`, `field_selector` and `label_selector` narrow it."""

    def __init__(
        self,
        api: Followable,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__(resource.plural)
        clock = clock or SystemClock()
        feed = ListWatch(resource, WholeObject, namespace, label_selector, field_selector)
        self._reflector = Reflector(
            api, feed, self, Hub(), clock=clock.monotonic, sleep=clock.sleep, rng=rng, timing=_TIMING
        )
        self._first_list = asyncio.Event()

    async def synced(self) -> None:
        """Return once the first complete list is in the cache."""
        await self._first_list.wait()

    async def run(self) -> None:
        """List and watch until cancelled."""
        await self._reflector.run()

    def apply(self, changed: WholeObject) -> bool:
        """Add or replace one object. One that was deleted and created again between two lists is told as two changes."""
        old = self.get(changed.metadata.key)
        if old is not None and old.metadata.uid != changed.metadata.uid:
            self.discard(changed.metadata.key)
        return super().apply(changed)

    def mark_synced(self, now: float) -> None:
        super().mark_synced(now)
        self._first_list.set()


class Mirrors:
    """The mirrors of one client, one per resource however many controllers read it."""

    def __init__(self, api: Followable, *, clock: Clock | None = None, rng: random.Random | None = None) -> None:
        self._api = api
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()
        self._mirrors: dict[Resource, Mirror] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._users = 0

    def of(self, resource: Resource) -> Mirror:
        """Return the mirror of a resource's objects, without the simulated population's. It must be called before `running`."""
        if resource not in self._mirrors:
            self._mirrors[resource] = Mirror(
                self._api, resource, label_selector=f"!{SIMULATED}", clock=self._clock, rng=self._rng
            )
        return self._mirrors[resource]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the mirrors fresh inside the block and enter it once all are synced; several users may nest it."""
        self._users += 1
        if self._users == 1:
            self._tasks = [asyncio.create_task(mirror.run()) for mirror in self._mirrors.values()]
        try:
            for mirror in self._mirrors.values():
                await mirror.synced()
            yield
        finally:
            self._users -= 1
            if self._users == 0:
                await self._stop()

    async def _stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
