"""Reads all objects of one kind: into a store, by a streaming list where the server has it and in pages elsewhere; or once, in pages,
for whoever needs them so seldom that a watch would cost more.

A streaming list is a watch that begins with what exists. The server answers it from its watch cache, yet it is as new as a list
from the database, because the cache first catches up with that; so nothing ever goes back in time. Objects wait in memory until the
server says that these were all. Pages are asked for without a version and are as new as that. `resourceVersion=0` is never
asked for: servers without streaming lists then ignore the page size, and may show a state from before the one that the store has.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from grid.core.errors import ClusterUnavailable, Expired, GridError, Rejected, TooManyRequests
from grid.core.translation import gettext as _
from grid.core.workqueue import in_slices
from grid.kube.api import Followable
from grid.kube.decoding import Bookmark, Changed, Codec, Failed, Line
from grid.kube.errors import Status, error_of
from grid.kube.objects import StorageClass, Volume, VolumeClaim
from grid.kube.resources import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES, Resource
from grid.kube.store import HasMetadata, Store

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)
PAGE_SIZE = 500  # 2 MB of pods: 10 ms to decode, so the loop stays free


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds and counts, with the reason for each."""

    page_size: int = PAGE_SIZE
    # A watch that the server closes in time proves that the connection lives, which bookmarks do not do everywhere: 1.20 sends
    # one only before the end. Below 60, where proxies cut what is quiet; drawn, so that many processes do not reopen at once.
    watch_seconds: tuple[int, int] = (40, 55)
    grace_seconds: float = 15.0  # a watch silent for so long after its time is dead
    sound_seconds: float = 5.0  # a watch that ends sooner is a failure, else a broken proxy would make a hot loop
    fruitless_watches: int = 3  # so many in a row and we list again: something swallows what is sent to us
    expired_watches: int = 3  # so many in a row without an event and the lists are all that we have
    # Many processes are told at once that a version is forgotten, and list within so many seconds of one another.
    relist_spread: float = 2.0
    lines_at_once: int = 100  # a flood of events lets other tasks run so often
    keys_at_once: int = 5_000  # that a list no longer has, 2 ms
    stream_seconds: int = 300  # 1 GB of pods over a slow line
    # A server that does not know streaming lists says nothing after the objects, where others end the list within a second or two.
    stream_silence: float = 10.0
    # A busy server lets a request wait for some 15 seconds before it begins to answer or says 429.
    stream_start: float = 25.0
    failed_streams: int = 3  # so many in a row and pages are tried: something cuts long answers
    paged_seconds: float = 3600.0  # for so long a server that has no streaming lists is not asked again
    unsure_seconds: float = 300.0  # so long when it did not say so: it may only have been busy, or away


class _NoStreamingList(Exception):
    """The server knows no streaming list."""


class _Silence(Exception):
    """No word that the list is complete: from a server that knows none, or is busy, or something on the way keeps it from us."""


@dataclass(eq=False)
class Listing(Generic[T]):
    """`page` gives one page of at most so many objects, from a continue token on; `stream` opens a streaming list for so many seconds."""

    _page: Callable[[int, str], Awaitable[bytes]]
    _stream: Callable[[int], AsyncIterator[bytes]]
    _store: Store[T]
    _codec: Codec[T]
    _clock: Callable[[], float]
    _timing: Timing
    _paged_until: float = field(default=0.0, init=False)
    _failed_streams: int = field(default=0, init=False)

    async def read(self) -> str:
        """Make the store equal to the cluster and return the version that it then has. Raises errors of `grid.core.errors`."""
        if self._clock() < self._paged_until:
            return await self._paged()
        paged_seconds = self._timing.unsure_seconds
        if self._failed_streams < self._timing.failed_streams:
            try:
                version = await self._streamed()
            except (Rejected, _NoStreamingList, _Silence) as error:
                logger.debug("reading the list in pages store=%s reason=%r", self._store.name, error)
                if not isinstance(error, _Silence):
                    paged_seconds = self._timing.paged_seconds
            except TooManyRequests:
                raise
            except Exception:
                self._failed_streams += 1
                raise
            else:
                self._failed_streams = 0
                return version
        self._failed_streams = 0
        version = await self._paged()
        # Not before: when pages fail too the cluster is away, which says nothing about what it can do.
        self._paged_until = self._clock() + paged_seconds
        return version

    def ask_again(self) -> None:
        """Forget that the server has no streaming lists: it may have been replaced by a newer one."""
        self._paged_until = 0.0

    async def _streamed(self) -> str:
        try:
            async with asyncio.timeout(self._timing.stream_start) as patience:
                version, seen, changed = await self._initial_events(patience)
        except TimeoutError:
            raise _Silence from None
        for number, listed in enumerate(changed.values(), start=1):
            self._store.apply(listed)
            if number % self._timing.lines_at_once == 0:
                await asyncio.sleep(0)
        await self._finish(version, seen)
        return version

    async def _initial_events(self, patience: asyncio.Timeout) -> tuple[str, set[str], dict[str, T]]:
        """Return the version of the list, the keys of all objects in it, and those objects that are not in the store as they are."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + self._timing.stream_seconds + self._timing.grace_seconds
        began = heard = loop.time()
        count = 0
        seen: set[str] = set()
        changed: dict[str, T] = {}
        # The protocol says iterator, and every iterator of bytes here is a generator, which must be closed when left.
        async with aclosing(self._stream(self._timing.stream_seconds)) as lines:  # type: ignore[type-var]
            async for line in lines:
                event = self._codec.line(line)
                if isinstance(event, Changed):
                    self._note(event, seen, changed)
                elif version := self._ends(event):
                    return version, seen, changed
                count += 1
                if count % self._timing.lines_at_once == 0:
                    await asyncio.sleep(0)
                if count == 1 or loop.time() - heard >= 1:
                    heard = loop.time()
                    patience.reschedule(min(heard + self._timing.stream_silence, latest))
                    self._store.mark_heard(self._clock())
        if loop.time() - began >= self._timing.stream_seconds:
            raise _Silence
        raise ClusterUnavailable(_("The API server's list ended before it was complete."))

    def _note(self, event: Changed[T], seen: set[str], changed: dict[str, T]) -> None:
        """Take the event in: a server that catches up while it sends may change or delete what it sent before."""
        key = event.object.metadata.key
        if event.gone:
            seen.discard(key)
            changed.pop(key, None)
            return
        seen.add(key)
        if self._store.get(key) == event.object:
            changed.pop(key, None)
        else:
            changed[key] = event.object

    def _ends(self, event: Line[T]) -> str:
        """Return the version of the list when this event ends it, else ""."""
        if isinstance(event, Bookmark):
            if not event.ends_list:
                raise _NoStreamingList
            return event.resource_version
        if isinstance(event, Failed):
            raise error_of(event.code, Status(event.message))
        if not isinstance(event, Changed):
            if not event.resource_version:
                raise ClusterUnavailable(_("The API server's list cannot be read."))
            logger.warning("unreadable object skipped in a list store=%s reason=%s", self._store.name, event.reason)
        return ""

    async def _paged(self) -> str:
        try:
            version, seen = await self._pages(self._timing.page_size)
        except Expired:
            # The list took longer than the server remembers; without pages it is one answer of one moment.
            version, seen = await self._pages(0)
        await self._finish(version, seen)
        return version

    async def _pages(self, size: int) -> tuple[str, set[str]]:
        seen: set[str] = set()
        token = ""
        while True:
            page = self._codec.page(await self._page(size, token), whole=size == 0)
            for chunk in page.chunks:
                for listed in chunk:
                    seen.add(listed.metadata.key)
                    self._store.apply(listed)
                await asyncio.sleep(0)
            self._store.mark_heard(self._clock())
            token = page.continue_token
            if not token:
                return page.resource_version, seen

    async def _finish(self, version: str, seen: set[str]) -> None:
        gone = self._store.keys() - seen
        async for key in in_slices(gone, self._timing.keys_at_once):
            self._store.discard(key)
        logger.debug("listed store=%s objects=%d gone=%d version=%s", self._store.name, len(seen), len(gone), version)


async def read_all(api: Followable, resource: Resource, kind: type[T], *, namespace: str = "") -> list[T]:
    """Return the objects. Raise errors of `grid.core.errors`."""
    return [obj async for chunk in read_chunks(api, resource, kind, namespace=namespace) for obj in chunk]


async def read_chunks(
    api: Followable, resource: Resource, kind: type[T], *, namespace: str = "", field_selector: str = ""
) -> AsyncIterator[Sequence[T]]:
    """Yield the objects a few at a time, so that whoever needs sums of them does not hold them all. Raise errors of `grid.core.errors`."""
    codec, token = Codec(kind), ""
    while True:
        body = await api.list_page(
            resource, namespace=namespace, field_selector=field_selector, limit=PAGE_SIZE, continue_token=token
        )
        page = codec.page(body)
        for chunk in page.chunks:
            yield chunk
            await asyncio.sleep(0)
        token = page.continue_token
        if not token:
            return


async def read_claims(api: Followable, namespace: str) -> dict[str, VolumeClaim]:
    """Return the claims of the namespace by `namespace/name`. Raise errors of `grid.core.errors`."""
    claims = await read_all(api, VOLUME_CLAIMS, VolumeClaim, namespace=namespace)
    return {claim.metadata.key: claim for claim in claims}


async def read_volumes(api: Followable) -> dict[str, Volume]:
    """Return all volumes by name. Raise errors of `grid.core.errors`."""
    return {volume.metadata.key: volume for volume in await read_all(api, VOLUMES, Volume)}


async def read_classes(api: Followable) -> dict[str, StorageClass] | None:
    """Return all storage classes by name; None without the right to list them, or without an answer."""
    try:
        return {each.metadata.key: each for each in await read_all(api, STORAGE_CLASSES, StorageClass)}
    except GridError as error:
        logger.debug("storage classes not listed reason=%s", error)
        return None
