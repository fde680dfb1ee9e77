"""What is listed while pods wait: claims, volumes, the namespace's limits; unknown rather than wrong."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from grid.core.errors import NotAllowed
from grid.kube.hub import Hub
from grid.kube.objects import Pod
from grid.kube.resources import LIMIT_RANGES, RESOURCE_QUOTAS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from grid.runtime.caches import NamespaceLimitsReader
from grid.runtime.volumelists import TOPIC, VolumeLists
from tests.support.builders import NAMESPACE, decode, metadata, pod
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled, loop_time, passes, virtual_time


def a_pod(name: str = "waits", *, claim: str = "project-1", **more: Any) -> Pod:
    volumes = [{"name": "project", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return decode(pod(name, spec={"volumes": volumes}, **more), Pod)


def a_claim(name: str, **spec: str) -> dict[str, Any]:
    return {"metadata": metadata(name, namespace=NAMESPACE), "spec": spec}


def a_cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(VOLUME_CLAIMS, a_claim("project-1", volumeName="disk-1"))
    cluster.put(VOLUME_CLAIMS, {"metadata": metadata("other", namespace="elsewhere")})
    cluster.put(VOLUMES, {"metadata": metadata("disk-1")})
    return cluster


@asynccontextmanager
async def listing(cluster: FakeCluster) -> AsyncIterator[tuple[VolumeLists, Hub]]:
    hub = Hub()
    lists = VolumeLists(cluster, NAMESPACE, hub)
    task = asyncio.create_task(lists.run())
    try:
        yield lists, hub
    finally:
        await cancelled(task)


def lists_asked(cluster: FakeCluster) -> int:
    return sum(request.resource == VOLUME_CLAIMS for request in cluster.requests)


@virtual_time
async def test_claims_of_waiting_pod_become_known_and_published() -> None:
    async with listing(a_cluster()) as (lists, hub):
        waits = a_pod()
        with hub.subscribe({TOPIC}) as changes:
            lists.pod_changed(None, waits)
            assert lists.known_for(waits) is None, "not that there is no claim"
            await passes(6)
            assert changes.taken() == {TOPIC}
        known = lists.known_for(waits)
        assert known is not None
        assert (list(known[0]), list(known[1])) == ([f"{NAMESPACE}/project-1"], ["disk-1"])


@virtual_time
async def test_newer_pod_is_not_judged_by_older_list() -> None:
    async with listing(a_cluster()) as (lists, _):
        lists.pod_changed(None, a_pod())
        await passes(6)
        later = a_pod("later")
        lists.pod_changed(None, later)
        assert lists.known_for(later) is None
        await passes(16)
        assert lists.known_for(later) is not None


@virtual_time
async def test_claims_are_not_listed_without_a_waiting_pod() -> None:
    cluster = a_cluster()
    async with listing(cluster) as (lists, _):
        lists.pod_changed(None, a_pod(claim=""))
        lists.pod_changed(None, a_pod("runs", node="n1", phase="Running"))
        lists.pod_changed(None, a_pod("elsewhere", namespace="elsewhere"))
        quick = a_pod("quick")
        lists.pod_changed(None, quick)
        lists.pod_changed(quick, a_pod("quick", node="n1"))
        await passes(60)
        assert lists_asked(cluster) == 0
        slow = a_pod("slow")
        lists.pod_changed(None, slow)
        await passes(60)
        assert 3 <= lists_asked(cluster) <= 5, "again and again, because a claim may be bound meanwhile"
        lists.pod_changed(slow, None)
        asked = lists_asked(cluster)
        await passes(60)
        assert lists_asked(cluster) == asked


@virtual_time
async def test_storage_classes_are_listed_for_unbound_waiting_claims() -> None:
    cluster = a_cluster()
    cluster.put(STORAGE_CLASSES, {"metadata": metadata("slow")})
    async with listing(cluster) as (lists, hub):
        lists.pod_changed(None, a_pod())
        await passes(30)
        assert not any(request.resource == STORAGE_CLASSES for request in cluster.requests)
        cluster.put(VOLUME_CLAIMS, a_claim("project-2", storageClassName="fast"))
        waits = a_pod("unbound", claim="project-2")
        lists.pod_changed(None, waits)
        cluster.forbidden[STORAGE_CLASSES] = "storageclasses is forbidden"
        await passes(20)
        known = lists.known_for(waits)
        assert known is not None
        assert (known.classes, f"{NAMESPACE}/project-2" in known.claims) == (None, True), "the claims are known still"
        del cluster.forbidden[STORAGE_CLASSES]
        for name in ("slow", "fast"):
            cluster.put(STORAGE_CLASSES, {"metadata": metadata(name)})
            with hub.subscribe({TOPIC}) as changes:
                await passes(20)
                assert changes.taken() == {TOPIC}
        known = lists.known_for(waits)
        assert known is not None
        assert set(known.classes or ()) == {"slow", "fast"}, "one may be made meanwhile"


@virtual_time
async def test_claims_are_unknown_without_list_rights() -> None:
    cluster = a_cluster()
    async with listing(cluster) as (lists, _):
        waits = a_pod()
        lists.pod_changed(None, waits)
        cluster.forbidden[VOLUMES] = "persistentvolumes is forbidden"
        await passes(30)
        assert lists.known_for(waits) is None
        del cluster.forbidden[VOLUMES]
        await passes(30)
        assert lists.known_for(waits) is not None


def stored(name: str, **more: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": NAMESPACE}, **more}


class Reading:
    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.now = 0.0
        self.reader = NamespaceLimitsReader(self.cluster, NAMESPACE, monotonic=lambda: self.now)

    @property
    def lists(self) -> int:
        return sum(request.verb == "list" for request in self.cluster.requests)


@virtual_time
async def test_many_at_once_ask_the_cluster_once() -> None:
    reading = Reading()
    reading.cluster.put(RESOURCE_QUOTAS, stored("team", status={"hard": {"pods": "3"}}))
    reading.cluster.put(LIMIT_RANGES, stored("sizes", spec={"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}))
    answers = await asyncio.gather(*(reading.reader.get() for _ in range(50)))
    assert reading.lists == 2
    assert all(limits is answers[0] for limits in answers)
    assert answers[0] is not None
    assert [quota.status.hard for quota in answers[0].quotas] == [{"pods": "3"}]
    assert [limit_range.spec.limits[0].max for limit_range in answers[0].ranges] == [{"cpu": "2"}]
    reading.now = 31.0
    await reading.reader.get()
    assert reading.lists == 4


@virtual_time
async def test_unreadable_limits_are_unknown_and_retried_later() -> None:
    reading = Reading()
    reading.cluster.fail_next(NotAllowed("no"), verb="list")
    assert await reading.reader.get() is None
    assert await reading.reader.get() is None
    reading.now = 31.0
    again = await reading.reader.get()
    assert again is not None
    assert again.quotas == ()


@virtual_time
async def test_limits_are_known_while_each_answer_takes_two_seconds() -> None:
    """Nobody waits for them for more than three."""
    reading = Reading()
    reading.cluster.list_seconds = 2.0
    assert await reading.reader.get() is not None
    assert loop_time() == pytest.approx(2.0)
