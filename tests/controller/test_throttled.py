"""An API server that answers 429 to whatever it is asked: everything is tried again, and no log has a traceback."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from grid.controller.leader import LEASE, Election
from grid.controller.periodictasks import TermInputs
from grid.core.errors import TooManyRequests
from grid.kube.resources import LEASES, PODS
from grid.models.dataplane import LOCAL
from grid.platformhealth.reading import Watched
from grid.runtime import lives_of, new_runtime, started, usage_source_of
from tests.controller.world import World, fresh, in_world
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.shop import Shop
from tests.support.virtual import cancelled, loop_time, passes, virtual_time

VERBS = ("list", "watch", "get", "create", "patch", "replace", "delete", "logs")


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.INFO)
    yield
    loud = [
        record.getMessage()
        for record in caplog.get_records("call")
        if record.exc_info or "Traceback" in record.getMessage()
    ]
    assert not loud


def throttle(cluster: FakeCluster) -> None:
    for verb in VERBS:
        cluster.fail_next(TooManyRequests("too many requests", retry_after=2), times=4, verb=verb)


@in_world
async def test_controller_survives_throttling_of_each_verb(shop: Shop) -> None:
    world = World()
    controller = world.controller(monotonic=loop_time)
    launched = [shop.launch(), shop.launch_cluster(after=1)]

    async def work() -> None:
        await controller.run(TermInputs(platform=Watched(NAMESPACE, "compute-grid-system")))

    election = Election(world.cluster, name=LEASE, namespace=NAMESPACE, identity="a", monotonic=loop_time)
    throttle(world.cluster)
    leading = asyncio.create_task(election.lead(work))
    for _round in range(12):
        await passes(10)
        world.behave()
        throttle(world.cluster)
    world.cluster.heal()
    for _round in range(12):
        await passes(10)
        world.behave()
    await cancelled(leading)
    assert [fresh(execution).state for execution in launched] == ["running", "running"]
    assert world.cluster.count("replace", LEASES) > 10


@virtual_time
async def test_web_process_survives_throttling_of_each_verb() -> None:
    cluster = FakeCluster()
    runtime = new_runtime({LOCAL: cluster}, monotonic=loop_time)
    lives = {name: life for name, life in lives_of(runtime, usage_source_of).items() if name != "executions"}
    throttle(cluster)
    tasks = started(lives)
    for _round in range(6):
        await passes(10)
        throttle(cluster)
    cluster.heal()
    await passes(60)
    assert runtime.freshness().error == ""
    for task in tasks:
        await cancelled(task)
    assert cluster.count("list", PODS) > 1
