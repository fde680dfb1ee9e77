"""A list-and-watch cache (an informer) of one resource, which controllers read instead of asking the server.

A mirror lists, watches from that version, resumes after a dropped connection, lists again and compares after 410 (so that
deletions are noticed), backs off with jitter and never gives up. Only its own `run` task writes it; any code on the
same loop may read it. The objects that it returns are shared and must not be changed. Listeners are called at once, in order, on the
loop, with the old and the new object; they only enqueue keys.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from grid.backoff import Backoff
from grid.labels import SIMULATED
from grid.sandbox.client.clock import Clock, SystemClock
from grid.sandbox.client.errors import ApiError
from grid.sandbox.client.http import Api, WatchEvent
from grid.sandbox.client.objects import Object, key_of
from grid.sandbox.client.resources import Resource

logger = logging.getLogger(__name__)

Listener = Callable[[Object | None, Object | None], None]
"""Called with (old, new): (None, object) when added, (old, None) when deleted."""

_SHORTEST_WATCH, _LONGEST_WATCH = 180, 300
_LONGEST_PAUSE = 10.0
# After a list and watch that lasted this long, back-off starts anew and the next failure is logged as a warning again.
_HEALTHY_SECONDS = 5.0


class Mirror:
    """A cache of one resource. `path` is the collection's, `field_selector` and `label_selector` narrow it."""

    def __init__(
        self,
        api: Api,
        path: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._api = api
        self.path = path
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()
        self._objects: dict[str, Object] = {}
        self._listeners: list[Listener] = []
        self._synced = asyncio.Event()
        self._version = ""

    def items(self) -> Collection[Object]:
        return self._objects.values()

    def get(self, key: str) -> Object | None:
        return self._objects.get(key)

    def subscribe(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def synced(self) -> None:
        """Return once the first complete list is in the cache."""
        await self._synced.wait()

    async def run(self) -> None:
        """List and watch until cancelled."""
        backoff = Backoff(longest=_LONGEST_PAUSE, rng=self._rng)
        failing = False
        while True:
            started = self._clock.monotonic()
            pause = 0.0
            problem = ""
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except ApiError as error:
                problem = str(error)
                pause = error.retry_after
                if error.expired:
                    self._version = ""
            except Exception:
                logger.exception("mirror path=%s failed and lists again", self.path)
                problem = "see above"
                self._version = ""
            if self._clock.monotonic() - started >= _HEALTHY_SECONDS:
                backoff.reset()
                failing = False
            elif not problem:
                # The watch ended at once: the server may have lost the changes up to our version, so list again.
                self._version = ""
                pause = max(pause, backoff.next())
            if problem:
                logger.log(
                    logging.DEBUG if failing else logging.WARNING, "mirror path=%s waits: %s", self.path, problem
                )
                failing = True
                pause = max(pause, backoff.next())
            if pause:
                await self._clock.sleep(pause)

    async def _list(self) -> None:
        listing = await self._api.list(
            self.path, label_selector=self._label_selector, field_selector=self._field_selector
        )
        fresh = {key_of(item): item for item in listing.items}
        for key in [key for key in self._objects if key not in fresh]:
            self._remove(key)
        for key, item in fresh.items():
            self._put(key, item)
        self._version = listing.resource_version
        self._synced.set()

    async def _watch(self) -> None:
        events = self._api.watch(
            self.path,
            resource_version=self._version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_seconds=self._rng.randint(_SHORTEST_WATCH, _LONGEST_WATCH),
        )
        async for event in events:
            self._apply(event)

    def _apply(self, event: WatchEvent) -> None:
        version = event.object["metadata"]["resourceVersion"]
        if event.type == "DELETED":
            self._remove(key_of(event.object), last=event.object)
        elif event.type in ("ADDED", "MODIFIED"):
            self._put(key_of(event.object), event.object)
        elif event.type != "BOOKMARK":
            logger.warning("mirror path=%s skips an event of unknown type %s", self.path, event.type)
        self._version = version

    def _put(self, key: str, item: Object) -> None:
        old = self._objects.get(key)
        if old is not None and old["metadata"].get("resourceVersion") == item["metadata"].get("resourceVersion"):
            return
        if old is not None and old["metadata"].get("uid") != item["metadata"].get("uid"):
            # The object was deleted and created again between two lists, so listeners are called for both.
            self._remove(key)
            old = None
        self._objects[key] = item
        self._tell(old, item)

    def _remove(self, key: str, last: Object | None = None) -> None:
        old = self._objects.pop(key, None)
        if old is not None:
            self._tell(last or old, None)

    def _tell(self, old: Object | None, new: Object | None) -> None:
        for listener in self._listeners:
            listener(old, new)


class Mirrors:
    """The mirrors of one client, one per resource however many controllers read it."""

    def __init__(self, api: Api, *, clock: Clock | None = None, rng: random.Random | None = None) -> None:
        self._api = api
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()
        self._mirrors: dict[str, Mirror] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._users = 0

    def of(self, resource: Resource) -> Mirror:
        """Return the mirror of a resource's objects, without the simulated population's. It must be called before `running`."""
        path = resource.path()
        if path not in self._mirrors:
            self._mirrors[path] = Mirror(
                self._api, path, label_selector=f"!{SIMULATED}", clock=self._clock, rng=self._rng
            )
        return self._mirrors[path]

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
