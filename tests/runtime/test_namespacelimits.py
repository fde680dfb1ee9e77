"""The limits of the namespace: read once for many, read again when old, and unknown rather than wrong."""

import asyncio

import pytest

from grid.core.errors import NotAllowed
from grid.kube.resources import LIMIT_RANGES, RESOURCE_QUOTAS
from grid.runtime.caches import NamespaceLimitsReader
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.virtual import loop_time, virtual_time


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
