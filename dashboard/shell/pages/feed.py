"""Feeds: one page for one audience, computed, compared and rendered once for all of its websockets. A feed lives while a websocket has
joined it. It keeps the newest state only: a slow websocket compares what its browser shows with the newest state and skips the states
between, so it gets fewer updates, never older ones."""

import asyncio
import logging
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from dashboard.shell.access import Viewer
from dashboard.shell.fragments import RenderedFragments
from dashboard.shell.pages.deadline_timer import NEVER, Alarm
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.slices import SLICE_SECONDS, Breath
from dashboard.shell.pages.turns import Turns
from dashboard.shell.viewmodels.freshness import (
    FRAGMENT_ID,
    LIVE,
    SMALL_DELAY,
    broken_view,
    freshness_fragment,
    freshness_view,
)
from dashboard.shell.viewmodels.live import Fragment, PageUpdate, Shown, changes, everything
from grid.kube.hub import Subscription
from grid.observability import telemetry
from grid.runtime import Runtime

logger = logging.getLogger(__name__)

rendered = RenderedFragments()
_FEW = 10  # fragments that take less time than a slice
_REMEMBERED = 32  # versions; a slower websocket counts as less late than it is


@dataclass(frozen=True, slots=True)
class Pace:
    """Intervals in seconds. After an update a page rests `rest_factor` times as long as it took with its sending, so that changes merge
    with the load: at most `longest_rest`, but without a limit when it reads the database, so that it does not overload that. A round of
    measurements changes all pages at once. They take it in one after the other, `usage_apart` between two of them but all within
    `usage_spread`, so that a change of something else need not wait for all of them."""

    longest_rest: float = 0.02
    freshness: float = 1.0
    after_failure: float = 3.0
    rest_factor: float = 4.0
    usage_apart: float = 0.01
    usage_spread: float = 10.0  # the next round comes after fifteen


async def current_fragments(
    page: LivePage[Any, Any], runtime: Runtime, viewer: Viewer, view: Hashable
) -> list[Fragment]:
    """Return all fragments of a page for its first paint; the freshness is the last."""
    facts = await page.read_in_time(runtime, viewer, view)
    now = runtime.clock()
    fragments = page.fragments(runtime, viewer, view, facts, now)
    view = freshness_view(runtime.freshness(), now=now, is_followed=False, away=runtime.controller_away())
    return [*fragments, freshness_fragment(view)]


class Feed:
    """A page's state for one audience: `latest` is the newest, `version` grows with each; `after` waits for a newer one."""

    def __init__(
        self,
        page: LivePage[Any, Any],
        runtime: Runtime,
        viewer: Viewer,
        view: Hashable,
        *,
        pace: Pace,
        turns: Turns,
        slices: asyncio.Lock,
    ) -> None:
        """Build a feed. `slices` is held for one slice of rendering, so that those of many feeds do not add up to one long wait."""
        self.version = 0
        self.latest = Shown.of((), page.regions)
        self.runtime = runtime
        self._page, self._viewer, self._view = page, viewer, view
        self._pace, self._turns, self._slices = pace, turns, slices
        self._measured: Subscription | None = None  # of what shows measurements
        self._newer = asyncio.Event()
        self._messages: dict[int, str] = {}
        self._rendering = asyncio.Lock()
        self._is_broken = False  # the page could not be made
        self._behind = 0.0  # seconds by which the latest update was late
        self._published = deque[tuple[int, float]](maxlen=_REMEMBERED)  # versions made by changes, and since when

    async def after(self, version: int) -> None:
        while self.version == version:
            await self._newer.wait()

    async def message(self, version: int, shown: Shown) -> tuple[str, int, Shown]:
        """Return the HTML that updates a browser from `shown`, the state of that version, to a newer state, with its version and the state.
        Version 0 shows nothing. The HTML is rendered once for all browsers, in slices: 200 new rows would block the event loop for 50
        ms."""
        if version and not self._rendering.locked() and not self._slices.locked():
            known = self._messages.get(version) or self._rendered_at_once(changes(shown, self.latest))
            if known is not None:
                self._messages[version] = known
                return known, self.version, self.latest
        async with self._rendering:
            newest, state = self.version, self.latest
            known = self._messages.get(version)
            if known is None:
                known = await self._rendered_in_slices(changes(shown, state) if version else everything(state))
                if newest == self.version:
                    self._messages[version] = known
            return known, newest, state

    def _rendered_at_once(self, lacking: Sequence[PageUpdate]) -> str | None:
        """Return the HTML of what is less than a slice, as nearly always; None for more."""
        if sum(len(update.fragments) for update in lacking) > _FEW:
            return None
        with self._turns.counted():
            return rendered.message(lacking, now=self.runtime.clock())

    async def _rendered_in_slices(self, lacking: Sequence[PageUpdate]) -> str:
        loop, made, is_whole = asyncio.get_running_loop(), list[str](), False
        parts = rendered.message_parts(lacking, now=self.runtime.clock())
        while not is_whole:
            async with self._slices:
                until = loop.time() + SLICE_SECONDS
                with self._turns.counted():
                    for part in parts:
                        made.append(part)
                        if loop.time() > until:
                            break
                    else:
                        is_whole = True
                if not is_whole:
                    await asyncio.sleep(0)  # still holding the lock, which would not yield when nobody waits for it
        return "".join(made)

    async def run(self) -> None:
        """Wait for a turn, update, publish, wait for a change or the next tick, and repeat; never return."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        with self.runtime.hub.subscribe(()) as subscription, Alarm(partial(subscription.mark, "tick")) as alarm:
            while True:
                await self._turns.take(due)
                looked_at = loop.time()
                self._behind = looked_at - due
                telemetry.looked(self._page.name, self._behind)
                try:
                    tick = await self._look(subscription)
                    await asyncio.sleep(0)  # meanwhile the websockets that wait for the update render and send it
                    rest = self._rest(loop.time() - looked_at)
                except Exception:
                    logger.exception("page not computed, trying again page=%s", self._page.name)
                    self._is_broken = True
                    self._publish(self.latest.with_single(self._freshness(self.runtime.clock())))
                    await asyncio.sleep(self._pace.after_failure)
                    due = loop.time()
                    continue
                alarm.set(looked_at + tick)
                await subscription.changed(not_before=loop.time() + min(rest, tick))
                alarm.set(NEVER)
                due = loop.time()

    def _rest(self, took: float) -> float:
        rest = self._pace.rest_factor * took
        if not self._page.reads_database:
            rest = min(self._pace.longest_rest, rest)
        return max(self._page.rest_seconds, rest)

    async def _look(self, subscription: Subscription) -> float:
        """Publish the present state and follow its topics. Return the seconds after which the page is to be updated without a change."""
        facts = await self._page.read(self.runtime, self._viewer, self._view)
        with self._turns.counted():
            now = self.runtime.clock()
            fragments = self._page.fragments(self.runtime, self._viewer, self._view, facts, now)
            topics = set(self._page.topics(self.runtime, self._viewer, self._view, facts))
            self._measured = subscription if self.runtime.usage.name in topics else None
            added = subscription.follow(topics - {self.runtime.usage.name})
            if self._page.reads_database:
                for topic in added:
                    subscription.mark(topic)  # it may have changed while the database was read, so update once more
            self._is_broken = False
            since = subscription.published_since()
            self._publish(Shown.of([*fragments, self._freshness_until_told(now)], self._page.regions), since)
            tick = self._page.tick(self.runtime, self._viewer, self._view, facts)
            # "Behind" is said until the next look, which may be in time again.
            return min(tick, self._page.tick_seconds) if self._behind >= SMALL_DELAY else tick

    def _freshness_until_told(self, now: datetime) -> Fragment:
        """Return the freshness. That of a page which was live at the last look is told by `publish_freshness`, once a second."""
        was_live = self.latest.singles.get(FRAGMENT_ID) == LIVE
        return LIVE if was_live and self._behind < SMALL_DELAY else self._freshness(now)

    def _freshness(self, now: datetime) -> Fragment:
        if self._is_broken:
            return freshness_fragment(broken_view())
        freshness, away = self.runtime.freshness(), self.runtime.controller_away()
        return freshness_fragment(freshness_view(freshness, now=now, busy_seconds=self._behind, away=away))

    @property
    def shows_measurements(self) -> bool:
        return self._measured is not None

    def take_in_measurements(self) -> None:
        """Make the page due, because there is a new round of measurements."""
        if self._measured is not None:
            self._measured.mark(self.runtime.usage.name)

    def publish_freshness(self) -> None:
        """Publish how far the page is behind, if that has changed; what else it shows stays as it is."""
        if not self.version:
            return
        fragment = self._freshness(self.runtime.clock())
        if self.latest.singles.get(fragment.id) != fragment:
            self._publish(self.latest.with_single(fragment))

    def changed_since(self, shown: int, version: int) -> float | None:
        """Return when the first change came that `version` shows and version `shown` does not, by `time.monotonic`, or None."""
        since = None
        for made, at in reversed(self._published):
            if made <= shown:
                break
            if made <= version:
                since = at
        return since

    def _publish(self, new: Shown, since: float | None = None) -> None:
        if self.version and new == self.latest:
            return
        self.latest = new
        self.version += 1
        if since is not None:
            self._published.append((self.version, since))
        self._messages.clear()
        newer, self._newer = self._newer, asyncio.Event()
        newer.set()


class Feeds:
    def __init__(self, pace: Pace = Pace(), turns: Turns | None = None) -> None:
        self._pace = pace
        self._turns = turns or Turns()
        self._feeds: dict[Hashable, tuple[Feed, asyncio.Task[None]]] = {}
        self._joined: dict[Hashable, int] = {}
        self._common: dict[Hashable, asyncio.Task[None]] = {}  # what is done for many feeds together
        self._slices = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._feeds)

    @contextmanager
    def joined(self, page: LivePage[Any, Any], runtime: Runtime, viewer: Viewer, view: Hashable) -> Iterator[Feed]:
        """Yield the feed for the viewer's audience and the view; it starts when the first websocket joins and stops with the last."""
        key = (page.name, id(runtime), page.audience(viewer), view)
        if key not in self._feeds:
            if not self._common:
                self._slices = asyncio.Lock()  # of the loop that runs now
                self._common["freshness"] = asyncio.create_task(self._publish_freshness(), name="freshness of feeds")
            if id(runtime) not in self._common:
                work = self._take_in_measurements(runtime)
                self._common[id(runtime)] = asyncio.create_task(work, name="measurements of feeds")
            feed = Feed(page, runtime, viewer, view, pace=self._pace, turns=self._turns, slices=self._slices)
            self._feeds[key] = feed, asyncio.create_task(feed.run(), name=f"feed {page.name}")
        self._joined[key] = self._joined.get(key, 0) + 1
        try:
            yield self._feeds[key][0]
        finally:
            self._joined[key] -= 1
            if not self._joined[key]:
                del self._joined[key]
                self._feeds.pop(key)[1].cancel()
                if not self._feeds:
                    for task in self._common.values():
                        task.cancel()
                    self._common = {}

    async def _publish_freshness(self) -> None:
        while True:
            await asyncio.sleep(self._pace.freshness)
            breath = Breath()
            for feed, _ in list(self._feeds.values()):
                try:
                    feed.publish_freshness()
                except Exception:
                    logger.exception("freshness of a page not published, trying again")
                await breath.take()

    async def _take_in_measurements(self, runtime: Runtime) -> None:
        loop = asyncio.get_running_loop()
        with runtime.hub.subscribe({runtime.usage.name}) as rounds:
            while True:
                await rounds.changed()
                began = loop.time()
                feeds = [
                    feed for feed, _ in self._feeds.values() if feed.runtime is runtime and feed.shows_measurements
                ]
                apart = min(self._pace.usage_apart, self._pace.usage_spread / max(1, len(feeds)))
                for number, feed in enumerate(feeds):
                    await asyncio.sleep(max(0.0, began + number * apart - loop.time()))
                    feed.take_in_measurements()
