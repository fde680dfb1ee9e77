"""When the open pages take in a new round of measurements, which changes all of them at once."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from datetime import datetime
from itertools import pairwise

from django.http import QueryDict

from dashboard.shell.access import Role, Viewer
from dashboard.shell.pages.feed import Feeds
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.live import Fragment
from grid.kube.hub import Topic
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, new_runtime
from tests.support.cluster import FakeCluster
from tests.support.virtual import loop_time, virtual_time

OPERATOR = Viewer(id=1, username="olga", role=Role.OPERATOR)


class Looks(LivePage[str, None]):
    """A page that notes at which time it looked for which view."""

    name = "looks"
    reads_database = False
    tick_seconds = 3600.0

    def __init__(self) -> None:
        self.of: dict[str, list[float]] = {}

    def view(self, query: QueryDict) -> str:
        return ""

    def allowed(self, runtime: Runtime, viewer: Viewer, view: str) -> bool:
        return True

    async def read(self, runtime: Runtime, viewer: Viewer, view: str) -> None:
        self.of.setdefault(view, []).append(loop_time())

    def topics(self, runtime: Runtime, viewer: Viewer, view: str, facts: None) -> Collection[Topic]:
        return {runtime.usage.name, ("pods", "name", view)}

    def fragments(self, runtime: Runtime, viewer: Viewer, view: str, facts: None, now: datetime) -> Sequence[Fragment]:
        return []


async def measured_while_open(count: int, pods_of: Collection[str] = ()) -> dict[str, float]:
    """Return after how many seconds each of so many pages looked again; half a second after the measurements these pages' pods change."""
    page, runtime = Looks(), new_runtime({LOCAL: FakeCluster()}, monotonic=loop_time)
    feeds = Feeds()
    with ExitStack() as stack:
        for number in range(count):
            stack.enter_context(feeds.joined(page, runtime, OPERATOR, str(number)))
        await asyncio.sleep(2)
        began = loop_time()
        runtime.hub.publish(runtime.usage.name)
        await asyncio.sleep(0.5)
        for view in pods_of:
            runtime.hub.publish(("pods", "name", view))
        await asyncio.sleep(4)
    return {view: next(at - began for at in times if at >= began) for view, times in page.of.items()}


@virtual_time
async def test_a_single_page_takes_measurements_in_at_once() -> None:
    assert max((await measured_while_open(1)).values()) <= 0.01


@virtual_time
async def test_three_hundred_pages_take_measurements_evenly_in_three_seconds() -> None:
    after = sorted((await measured_while_open(300)).values())
    assert 2.9 <= after[-1] <= 3.1
    assert max(later - earlier for earlier, later in pairwise(after)) <= 0.05


@virtual_time
async def test_page_with_changing_pods_does_not_wait_for_measurements() -> None:
    after = await measured_while_open(300, pods_of={"299"})
    assert after["299"] <= 0.51
    assert sum(seconds <= 0.51 for seconds in after.values()) < 100
