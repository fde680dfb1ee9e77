"""A reflector of pods over the fake cluster, running in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from grid.kube.objects import Pod
from grid.kube.resources import PODS
from grid.watch.hub import Hub
from grid.watch.listing import Timing
from grid.watch.reflector import ListWatch, Reflector
from grid.watch.store import Freshness, Store, announce
from tests.support.builders import decode, pod
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled, loop_time

ALL_PODS = ListWatch(PODS, Pod)


@dataclass
class Following:
    cluster: FakeCluster
    store: Store[Pod]
    hub: Hub

    def names(self) -> set[str]:
        return {one.metadata.name for one in self.store.values()}

    def is_equal(self) -> bool:
        """Whether the store holds exactly the cluster's pods, field for field."""
        return {one.metadata.key: one for one in self.store.values()} == {
            one.metadata.key: one for one in (decode(obj, Pod) for obj in self.cluster.objects(PODS))
        }

    def freshness(self) -> Freshness:
        return self.store.freshness(loop_time())


@asynccontextmanager
async def following(
    cluster: FakeCluster, *, timing: Timing | None = None, seed: int = 1, feed: ListWatch[Pod] = ALL_PODS
) -> AsyncIterator[Following]:
    store: Store[Pod] = Store("pods", indexes={"node": lambda one: one.spec.node_name})
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
