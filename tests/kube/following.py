"""A reflector of pods over the fake cluster, running in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass

from grid.kube.hub import Hub
from grid.kube.listing import Timing
from grid.kube.objects import Pod
from grid.kube.reflector import ListWatch, Reflector
from grid.kube.resources import PODS
from grid.kube.store import Freshness, Store, announce
from tests.support.builders import decode, pod
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled, loop_time, until

ALL_PODS = ListWatch(PODS, Pod)


@dataclass
class Following:
    cluster: FakeCluster
    store: Store[Pod]
    hub: Hub

    def names(self) -> set[str]:
        return {pod.metadata.name for pod in self.store.values()}

    def is_equal(self) -> bool:
        """Whether the store holds exactly the cluster's pods, field for field."""
        return {pod.metadata.key: pod for pod in self.store.values()} == {
            pod.metadata.key: pod for pod in (decode(obj, Pod) for obj in self.cluster.objects(PODS))
        }

    def freshness(self) -> Freshness:
        return self.store.freshness(loop_time())


@asynccontextmanager
async def following(
    cluster: FakeCluster, *, timing: Timing | None = None, seed: int = 1, feed: ListWatch[Pod] = ALL_PODS
) -> AsyncIterator[Following]:
    store: Store[Pod] = Store("pods", indexes={"node": lambda pod: pod.spec.node_name})
    hub = Hub()
    announce(store, hub)
    reflector = Reflector(cluster, feed, store, hub, clock=loop_time, rng=random.Random(seed), timing=timing)
    task = asyncio.create_task(reflector.run())
    try:
        yield Following(cluster, store, hub)
    finally:
        assert not task.done(), "a reflector never ends by itself"
        await cancelled(task)


def cluster_of(*names: str, bookmark_seconds: float = 60.0) -> FakeCluster:
    cluster = FakeCluster(bookmark_seconds=bookmark_seconds)
    for name in names:
        cluster.put(PODS, pod(name))
    return cluster


def ways(cluster: FakeCluster) -> list[str]:
    """How each list was asked for since the requests were last cleared."""
    return [request.detail or "page" for request in cluster.requests if "list" in request.verb]


async def lists_again(it: Following, *, equal: Set[str] | None = None) -> list[str]:
    """How the next list is read, which a forgotten version brings about; the store then has what the cluster has, or these names."""
    await until(lambda: it.cluster.open_watches == 1)
    it.cluster.requests.clear()
    it.cluster.compact()
    it.cluster.drop_watch()
    it.cluster.put(PODS, pod(f"new-{it.cluster.server.store.version}"))
    await until(lambda: it.is_equal() if equal is None else it.names() == equal, within=60)
    await until(lambda: it.cluster.open_watches == 1, within=60)
    return ways(it.cluster)
