"""A mirror keeps whole objects by a reflector, and tells its listeners of each change. How it follows a server is in `tests/kube`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from grid.sandbox.client import PODS, Mirror, Object, name_of
from tests.support.builders import NAMESPACE, pod
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled
from tests.support.waiting import eventually


@dataclass
class Watched:
    mirror: Mirror
    heard: list[tuple[str, str]] = field(default_factory=list)

    def listen(self, old: Object | None, new: Object | None) -> None:
        kind = "added" if old is None else "deleted" if new is None else "changed"
        self.heard.append((kind, name_of(new or old or {})))


@asynccontextmanager
async def watched(cluster: FakeCluster) -> AsyncIterator[Watched]:
    """A mirror that has synced."""
    listener = Watched(Mirror(cluster, PODS))
    listener.mirror.subscribe(listener.listen)
    task = asyncio.create_task(listener.mirror.run())
    await listener.mirror.synced()
    await eventually(lambda: cluster.count("watch") == 1, "a watch is open")
    try:
        yield listener
    finally:
        await cancelled(task)


async def test_mirror_equals_the_server_and_reports_changes_once() -> None:
    cluster = FakeCluster()
    cluster.put(PODS, pod("a"))
    async with watched(cluster) as seen:
        cluster.put(PODS, pod("b") | {"unknown": {"field": [1, None]}})
        cluster.put(PODS, pod("a", node="n1"))
        cluster.remove(PODS, "b", namespace=NAMESPACE)
        await eventually(lambda: len(seen.heard) == 4, "all changes are heard of")
        assert seen.heard == [("added", "a"), ("added", "b"), ("changed", "a"), ("deleted", "b")]
        assert [*seen.mirror.values()] == cluster.objects(PODS)


async def test_recreation_between_lists_is_heard_as_two_events() -> None:
    cluster = FakeCluster()
    cluster.put(PODS, pod("a", uid="first"))
    async with watched(cluster) as seen:
        cluster.lose_events(2)
        cluster.remove(PODS, "a", namespace=NAMESPACE)
        cluster.put(PODS, pod("a", uid="second"))
        cluster.compact()
        cluster.drop_watch()
        await eventually(lambda: len(seen.heard) == 3, "the new object is heard of")
        assert seen.heard == [("added", "a"), ("deleted", "a"), ("added", "a")]
