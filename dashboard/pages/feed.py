"""One page as one audience sees it: computed once for all of their sockets, at most ten times a second.

A feed lives while somebody has joined it. It keeps the newest state only: a socket that was slow compares what its browser has
with the newest and skips everything between, so it gets fewer updates, never older ones.
"""

import asyncio
import logging
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dashboard.access import Viewer
from dashboard.pages.page import LivePage
from dashboard.viewmodels.freshness import broken_view, freshness_fragment, freshness_view
from dashboard.viewmodels.live import Fragment, Shown
from grid.runtime import Runtime

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds. A page that takes long to compute rests `rest_factor` times as long, so that it never fills the loop."""

    least: float = 0.1
    freshness: float = 1.0
    after_failure: float = 3.0
    rest_factor: float = 4.0


async def current_fragments(
    page: LivePage[Any], runtime: Runtime, viewer: Viewer, view: Hashable, *, is_followed: bool
) -> list[Fragment]:
    """All fragments of a page now, the freshness as the last: for its first paint and for its feed."""
    now = runtime.clock()
    fragments = await page.fragments(runtime, viewer, view, now)
    freshness = freshness_view(runtime.freshness(), now=now, is_followed=is_followed)
    return [*fragments, freshness_fragment(freshness)]


class Feed:
    """`latest` is the newest state, `version` grows with each; wait for a newer one with `after`."""

    def __init__(self, page: LivePage[Any], runtime: Runtime, viewer: Viewer, view: Hashable, *, pace: Pace) -> None:
        self.version = 0
        self.latest = Shown.of(())
        self._page, self._runtime, self._viewer, self._view = page, runtime, viewer, view
        self._pace = pace
        self._newer = asyncio.Event()
        self._fragments: list[Fragment] = []

    async def after(self, version: int) -> None:
        """Return when there is something newer than `version`."""
        while self.version == version:
            await self._newer.wait()

    async def run(self) -> None:
        """For ever: look, publish, wait until something changes or time has passed."""
        loop = asyncio.get_running_loop()
        with self._runtime.hub.subscribe(self._page.topics) as subscription:
            while True:
                looked_at, rest, tick = loop.time(), self._pace.least, self._page.tick_seconds
                try:
                    self._publish(await self._look())
                except Exception:
                    logger.exception("page not computed, trying again page=%s", self._page.name)
                    self._publish([*self._fragments, freshness_fragment(broken_view())])
                    rest = tick = self._pace.after_failure
                spent = loop.time() - looked_at
                # The interval counts from look to look; a look that takes long is followed by a longer rest, but one that had to
                # wait for the database by no rest of minutes.
                await asyncio.sleep(min(max(rest - spent, self._pace.rest_factor * spent), tick))
                until = looked_at + tick
                while loop.time() < until:
                    try:
                        async with asyncio.timeout(min(self._pace.freshness, until - loop.time())):
                            await subscription.changed()
                            break
                    except TimeoutError:
                        self._publish_freshness()

    async def _look(self) -> list[Fragment]:
        return await current_fragments(self._page, self._runtime, self._viewer, self._view, is_followed=True)

    def _publish_freshness(self) -> None:
        now = self._runtime.clock()
        self._publish([*self._fragments, freshness_fragment(freshness_view(self._runtime.freshness(), now=now))])

    def _publish(self, fragments: list[Fragment]) -> None:
        self._fragments = fragments[:-1]
        new = Shown.of(fragments, self._page.regions)
        if self.version and new == self.latest:
            return
        self.latest = new
        self.version += 1
        newer, self._newer = self._newer, asyncio.Event()
        newer.set()


class Feeds:
    """The feeds that somebody looks at now."""

    def __init__(self, pace: Pace = Pace()) -> None:
        self._pace = pace
        self._feeds: dict[Hashable, tuple[Feed, asyncio.Task[None]]] = {}
        self._joined: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._feeds)

    @contextmanager
    def joined(self, page: LivePage[Any], runtime: Runtime, viewer: Viewer, view: Hashable) -> Iterator[Feed]:
        """The feed for this audience and view; it starts with its first and ends with its last."""
        key = (page.name, id(runtime), page.audience(viewer), view)
        if key not in self._feeds:
            feed = Feed(page, runtime, viewer, view, pace=self._pace)
            self._feeds[key] = feed, asyncio.create_task(feed.run(), name=f"feed {page.name}")
        self._joined[key] = self._joined.get(key, 0) + 1
        try:
            yield self._feeds[key][0]
        finally:
            self._joined[key] -= 1
            if not self._joined[key]:
                del self._joined[key]
                self._feeds.pop(key)[1].cancel()
