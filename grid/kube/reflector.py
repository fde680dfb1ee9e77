"""Keeps a store equal to the cluster: list, then watch from there, for ever.

Promises: a dropped watch resumes from the last version, so nothing is lost and nothing is done twice; a forgotten version (410) leads to a
new list, and what is not in it is discarded; failures are waited out with growing, jittered delays and never end it; a watch that ends at
once, or is silent for longer than asked for, counts as a failure; the store's freshness is true all the while.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from grid.core.backoff import Backoff
from grid.core.errors import ClusterUnavailable, Expired, GridError
from grid.core.translation import gettext as _
from grid.kube.api import Followable
from grid.kube.decoding import Bookmark, Changed, Codec, Failed, Line, Unreadable
from grid.kube.hub import Hub
from grid.kube.listing import Listing, Timing
from grid.kube.resources import Resource
from grid.kube.store import HasMetadata, Store
from grid.kube.trouble import ClusterTrouble, TroubleJudge
from grid.observability import telemetry

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True, slots=True)
class ListWatch(Generic[T]):
    """What to read: which resource, as which type, and which part of it."""

    resource: Resource
    kind: type[T]
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


class Reflector(Generic[T]):
    def __init__(
        self,
        api: Followable,
        feed: ListWatch[T],
        store: Store[T],
        hub: Hub,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._api, self._feed, self._store, self._hub = api, feed, store, hub
        self._clock, self._sleep, self._rng = clock, sleep, rng or random.Random()
        self._timing = timing = timing or Timing()
        self._codec = Codec(feed.kind)
        self._listing = Listing(self._list_page, partial(self._open, version=""), store, self._codec, clock, timing)
        self._backoff = Backoff(rng=self._rng)
        self._version = ""  # "" means: list first
        self._listed = False  # whether the present watch follows a list of its own
        self._fruitless = 0
        self._expired = 0  # versions in a row that were forgotten before an event came
        self._expired_at = 0.0  # when the first of them was
        self._unsure = False  # we were cut off, or heard nothing: ask before trusting a watch that says nothing
        self._failing = False
        # When the first request that failed was sent, or the watch broke; None after silence.
        self._cut_off_at: float | None = None
        self._asked_at = 0.0
        self._relisting = ""  # why the next list is not the first
        self._judge = TroubleJudge()
        self._open_watches = telemetry.watches_of(store.name)

    async def run(self) -> None:
        """Follow the cluster for ever; wait a little after anything but a long, sound watch."""
        while True:
            delay = 0.0
            try:
                sound = await self._follow()
            except Expired as error:
                logger.debug("listing again store=%s reason=%s", self._store.name, error)
                self._must_list_again("expired")
                self._expired_at = self._expired_at if self._expired else self._clock()
                self._expired += 1
                self._doubt_watches()
                sound = not self._listed  # a list that is at once too old must not be repeated without a wait
                if sound:
                    await self._sleep(self._rng.uniform(0, self._timing.relist_spread))
                    continue
            except GridError as error:
                was_starting = self._judge.is_starting
                self._failed(*self._judge.judge(error, self._clock()), reason=str(error))
                if self._judge.is_starting and not was_starting:
                    self._backoff.reset()  # it is back, and needs seconds, however long it was away
                sound = False
                delay = error.retry_after
            except Exception:
                # A fault of ours or an answer nobody foresaw: what we hold may be wrong, so begin anew.
                logger.exception("following the cluster failed store=%s", self._store.name)
                self._failed(_("Its answer was not understood; the log says more."), ClusterTrouble.GARBLED)
                self._must_list_again("misunderstood")
                sound = False
            if sound:
                self._backoff.reset()
            else:
                await self._sleep(max(delay, self._backoff.next()))

    async def _follow(self) -> bool:
        """List or ask if needed, then one watch to its end; whether that lasted long enough to go on without a wait."""
        if self._fruitless >= self._timing.fruitless_watches:
            self._must_list_again("fruitless")
        self._listed = not self._version
        self._asked_at = self._clock()
        if not self._unsure:
            self._cut_off_at = self._asked_at
        if self._listed:
            await self._list()
        elif self._unsure:
            await self._probe()
        began = self._cut_off_at = self._asked_at = self._clock()
        try:
            with self._open_watches.track_inprogress():
                ended_well = await self._watch()
        except ClusterUnavailable as error:
            self._cut_off_at = self._clock()
            if self._clock() - began < self._timing.sound_seconds:
                raise
            # Connections break; whether the cluster is away is seen by asking it, which comes next.
            logger.debug("watch broke store=%s reason=%s", self._store.name, error)
            self._judge.silent()
            self._unsure, ended_well = True, True
        sound = self._clock() - began >= self._timing.sound_seconds
        self._expired = 0 if sound else self._expired
        self._fruitless = 0 if sound and ended_well else self._fruitless + 1
        return sound

    def _must_list_again(self, reason: str) -> None:
        """List next; the reason is counted once the list has come, unless it is the first."""
        if self._version:
            self._relisting = reason
        self._version = ""

    async def _list(self) -> None:
        self._version = await self._listing.read()
        self._fruitless, self._unsure = 0, False
        if self._relisting:
            telemetry.listed_again(self._store.name, self._relisting)
            self._relisting = ""
        first = not self._store.freshness(self._clock()).synced
        self._store.mark_synced(self._clock())
        if self._expired < self._timing.expired_watches:
            self._recovered()
        self._doubt_watches()
        if first:
            self._hub.publish(self._store.name)

    async def _list_page(self, limit: int, token: str = "") -> bytes:
        return await self._api.list_page(
            self._feed.resource,
            namespace=self._feed.namespace,
            label_selector=self._feed.label_selector,
            field_selector=self._feed.field_selector,
            limit=limit,
            continue_token=token,
        )

    async def _probe(self) -> None:
        """Ask one small question: does the cluster answer, and is it still the one whose versions we know?"""
        answer = self._codec.page(await self._list_page(1))
        if self._failing:
            self._listing.ask_again()
        self._must_not_go_back(answer.resource_version)
        self._unsure = False
        self._store.mark_heard(self._clock())
        self._recovered()

    def _must_not_go_back(self, version: str) -> None:
        """Raise Expired when this is older than what we know: versions of one cluster are numbers that grow, and others cannot
        be compared."""
        known = self._version
        if version.isdecimal() and known.isdecimal() and int(version) < int(known):
            raise Expired("the cluster's versions have gone back, as after restoring a backup")

    async def _watch(self) -> bool:
        """Follow one watch to its end. Return False when it was silent or garbled rather than closed."""
        seconds = self._rng.randint(*self._timing.watch_seconds)
        watch = self._open(seconds, version=self._version)
        longest = seconds + self._timing.grace_seconds
        loop = asyncio.get_running_loop()
        heard = loop.time()
        count = 0
        try:
            # The protocol says iterator, and every iterator of bytes here is a generator, which must be closed when left.
            async with asyncio.timeout(longest) as patience, aclosing(watch) as lines:  # type: ignore[type-var]
                async for line in lines:
                    if not self._take(self._codec.line(line)):
                        return False
                    count += 1
                    if count % self._timing.lines_at_once == 0:
                        await asyncio.sleep(0)
                    if (now := loop.time()) - heard >= 1:  # not for each line of a flood
                        heard = now
                        patience.reschedule(now + longest)
        except TimeoutError:
            self._unsure, self._cut_off_at = True, None
            logger.debug("watch is silent, opening another store=%s", self._store.name)
            return False
        self._store.mark_heard(self._clock())
        self._recovered()
        return True

    def _open(self, seconds: int, *, version: str) -> AsyncIterator[bytes]:
        return self._api.watch(
            self._feed.resource,
            resource_version=version,
            namespace=self._feed.namespace,
            label_selector=self._feed.label_selector,
            field_selector=self._feed.field_selector,
            timeout_seconds=seconds,
            initial_events=not version,
        )

    def _take(self, line: Line[T]) -> bool:
        """Take one event into the store; return False when the stream can no longer be trusted."""
        if isinstance(line, Changed):
            meta = line.object.metadata
            if line.gone:
                self._store.discard(meta.key)
            else:
                self._store.apply(line.object)
            self._version = meta.resource_version or self._version
        elif isinstance(line, Bookmark):
            self._must_not_go_back(line.resource_version)
            self._version = line.resource_version
        elif isinstance(line, Failed):
            if line.code == 410:
                raise Expired(line.message)
            logger.warning("watch ended by the server store=%s code=%d", self._store.name, line.code)
            return False
        elif isinstance(line, Unreadable):
            name, version = self._store.name, line.resource_version or "?"
            logger.warning("unreadable event skipped store=%s version=%s reason=%s", name, version, line.reason)
            if not line.resource_version:
                return False
            self._version = line.resource_version
        self._expired = 0
        self._store.mark_heard(self._clock())
        self._recovered()
        return True

    def _failed(self, sentence: str, trouble: ClusterTrouble, *, reason: str = "") -> None:
        if reason:
            level = logging.DEBUG if self._failing else logging.WARNING
            logger.log(level, "cut off from the cluster store=%s reason=%s", self._store.name, reason)
        # A list between two forgotten versions does not end that trouble.
        asked_at = self._expired_at if trouble is ClusterTrouble.EXPIRED else self._asked_at
        self._store.mark_failed(sentence, self._cut_off_at, trouble=trouble, at=asked_at)
        self._unsure = True
        if not self._failing:
            self._hub.publish(self._store.name)
        self._failing = True

    def _doubt_watches(self) -> None:
        """Say that only lists tell of the cluster, while one version after the other is forgotten before it can be watched from."""
        if self._expired < self._timing.expired_watches:
            return
        if not self._failing:
            logger.warning("versions are forgotten again and again store=%s times=%d", self._store.name, self._expired)
        sentence = _("It forgets each version at once (HTTP 410), so all is listed again and again. See its etcd.")
        was_unsure, self._cut_off_at = self._unsure, self._clock()
        self._failed(sentence, ClusterTrouble.EXPIRED)
        self._unsure = was_unsure

    def _recovered(self) -> None:
        if self._failing:
            logger.info("following the cluster again store=%s", self._store.name)
            self._hub.publish(self._store.name)
        self._failing = False
        self._judge.answered()
