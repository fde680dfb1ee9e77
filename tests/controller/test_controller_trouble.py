"""An execution in trouble: pods that go, caches that lag, a cluster that refuses, throttles or is gone, objects of somebody else."""

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest

from grid.controller.leader import LEASE, Election
from grid.controller.periodictasks import TermInputs
from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, Problem, Rejected, TooManyRequests
from grid.executions.stopping import request_stop
from grid.kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, PODS
from grid.models import Execution, UsageInterval
from grid.models.dataplane import LOCAL
from grid.platformhealth.reading import Watched
from grid.runtime import lives_of, new_runtime, started, usage_source_of
from tests.controller.world import World, fresh, in_world, launched, running, to_running
from tests.support.builders import NAMESPACE, condition, config_map, container_status
from tests.support.cluster import FakeCluster
from tests.support.runtime import become
from tests.support.shop import OWNER, Shop
from tests.support.virtual import cancelled, loop_time, passes, virtual_time

QUOTA_IS_USED_UP = (
    "The quota “team” of the namespace has too little left: 10 of 10 pods are in use and this takes 1 pod. "
    "It starts when something else in the namespace ends; an admin of the cluster can raise the quota."
)
VERBS = ("list", "watch", "get", "create", "patch", "replace", "delete", "logs")


@in_world
async def test_vanished_pod_is_an_error_and_not_made_again(shop: Shop) -> None:
    for rounds in (1, 2, 3):
        world, controller, execution = launched(shop)
        await world.rounds(controller, rounds)
        world.cluster.remove(PODS, execution.object_name, namespace=NAMESPACE)
        await world.step(controller)
        await world.step(controller)
        assert (fresh(execution).state, execution.reason) == ("error", "pod_gone")
        assert "or the cluster was restored from a backup. " in execution.words(OWNER)
        assert execution.slots_freed_at is not None
        assert world.cluster.count("create", PODS) == 1


@in_world
async def test_eviction_is_explained_and_slot_waits_for_the_pod(shop: Shop) -> None:
    world, controller, execution = await running(shop)
    pod = world.pod_of(execution)
    pod["status"]["conditions"].append(
        condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "node is drained")
    )
    world.cluster.put(PODS, pod)
    await world.cluster.delete(PODS, execution.object_name, namespace=NAMESPACE)
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("error", "pod_deleted")
    assert "(node is drained)" in execution.words(OWNER)
    assert execution.words(OWNER).endswith("files are kept; resume it.")
    assert execution.slots_freed_at is None
    world.behave()
    await world.step(controller)
    assert fresh(execution).slots_freed_at is not None


@in_world
async def test_slot_is_not_freed_by_a_stale_cache(shop: Shop) -> None:
    world, controller, execution = await running(shop)
    request_stop(execution, by="alice", now=world.now)
    become(controller.pods, [])  # the cache says that it is gone; the cluster knows better
    await world.step(controller, fresh=False)
    assert (fresh(execution).state, execution.slots_freed_at) == ("stopping", None)


@in_world
async def test_a_running_one_survives_a_cache_that_lost_it(shop: Shop) -> None:
    world, controller, execution = await running(shop)
    become(controller.pods, [])
    await world.step(controller, fresh=False)
    assert fresh(execution).state == "running"


@in_world
async def test_an_object_of_somebody_else_is_left_alone(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    world.cluster.put(CONFIG_MAPS, config_map(execution.object_name, {"theirs": "yes"}))
    await world.step(world.controller())
    assert (fresh(execution).state, execution.reason) == ("error", "not_created")
    assert "belongs to something else" in execution.words(OWNER)
    assert world.cluster.objects(CONFIG_MAPS)[0]["data"] == {"theirs": "yes"}
    assert execution.slots_freed_at is not None


@in_world
@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            NotAllowed(
                'pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10'
            ),
            QUOTA_IS_USED_UP,
        ),
        (
            ClusterUnavailable(
                'failed calling webhook "images.example.com": failed to call webhook: connection refused'
            ),
            "The cluster's webhook images.example.com has to allow it first, and could not be asked: it refuses the connection",
        ),
        (TooManyRequests("The API server answered HTTP 429."), "The cluster's API server has too many requests."),
        (
            NotFound("the server could not find the requested resource"),
            "The cluster does not know objects of this kind.",
        ),
        (
            NotAllowed('pods "a" is forbidden: no PriorityClass with name batch was found'),
            "The cluster has no priority class “batch”.",
        ),
        (
            Rejected(
                [
                    Problem(
                        "", "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: not yet synced"
                    )
                ]
            ),
            "The cluster's policy p has an error, so it lets nothing through: not yet synced.",
        ),
    ],
)
async def test_passing_refusal_is_said_and_waited_for(shop: Shop, error: GridError, sentence: str) -> None:
    world, controller, execution = launched(shop)
    world.cluster.fail_next(error, verb="create")
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("deploying", "not_allowed")
    assert execution.words(OWNER).startswith(sentence)
    await passes(15)
    await to_running(world, controller)
    assert fresh(execution).state == "running"


@in_world
@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            Rejected([Problem("", 'admission webhook "images.example.com" denied the request: only our registry')]),
            "The cluster's rule images.example.com forbids it: only our registry. Ask an admin of the cluster.",
        ),
        (ClusterUnavailable("etcdserver: request is too large"), "It is larger than the cluster's API server takes."),
    ],
)
async def test_lasting_refusal_ends_it_with_advice(shop: Shop, error: GridError, sentence: str) -> None:
    world, controller, execution = launched(shop)
    world.cluster.fail_next(error, verb="create")
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("error", "not_created")
    assert execution.words(OWNER).startswith(sentence)


@in_world
async def test_namespace_that_may_not_be_created_is_said(shop: Shop) -> None:
    world, controller, execution = launched(shop)
    forbidden = (
        'namespaces is forbidden: User "grid" cannot create resource "namespaces" in API group "" at the cluster scope'
    )
    world.cluster.fail_next(NotFound('namespaces "executions" not found'), verb="create")
    world.cluster.fail_next(NotAllowed(forbidden), verb="get")
    await world.step(controller)
    assert fresh(execution).state == "deploying"
    assert execution.words(OWNER).startswith("Compute Grid may not create namespaces in the cluster.")


@in_world
async def test_an_unreachable_cluster_is_waited_for(shop: Shop) -> None:
    world, controller, execution = launched(shop)
    world.cluster.available = False
    for _ in range(5):
        await world.step(controller)
        await passes(30)
    assert fresh(execution).state == "deploying"
    world.cluster.available = True
    await to_running(world, controller)
    assert fresh(execution).state == "running"


@in_world
async def test_a_missing_namespace_is_made(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    world.cluster.server.delete(NAMESPACES, NAMESPACE, "")
    assert NAMESPACE not in [namespace["metadata"]["name"] for namespace in world.cluster.objects(NAMESPACES)]
    controller = world.controller()
    await world.step(controller)
    await passes(2)
    await to_running(world, controller)
    assert NAMESPACE in [namespace["metadata"]["name"] for namespace in world.cluster.objects(NAMESPACES)]
    assert fresh(execution).state == "running"


@in_world
async def test_an_orphan_of_a_settled_execution_is_removed(shop: Shop) -> None:
    world, controller, execution = launched(shop)
    await world.step(controller)
    orphan = world.pod_of(execution)
    world.cluster.remove(PODS, execution.object_name, namespace=NAMESPACE)
    await world.step(controller)
    assert fresh(execution).state == "error"
    world.cluster.put(PODS, orphan)  # a deposed leader's last request arrives late
    await world.step(controller)
    assert world.pods() == []


@in_world
async def test_pods_of_another_installation_are_left_alone(shop: Shop) -> None:
    world, controller, execution = await running(shop)
    UsageInterval.objects.all().delete()
    Execution.objects.all().delete()
    await world.step(controller)
    assert len(world.pods()) == 1
    assert execution.object_name == world.pods()[0]["metadata"]["name"]


@in_world
async def test_crash_loop_after_start_leaves_it_running_until_stopped(shop: Shop) -> None:
    world, controller, execution = await running(shop)
    pod = world.pod_of(execution)
    pod["status"]["containerStatuses"] = [container_status(state={"waiting": {"reason": "CrashLoopBackOff"}})]
    world.cluster.put(PODS, pod)
    world.passes(timedelta(hours=2).total_seconds())
    await world.step(controller)
    assert fresh(execution).state == "running"


@pytest.fixture
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
async def test_controller_survives_throttling_of_each_verb(shop: Shop, quiet_log: None) -> None:
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
async def test_web_process_survives_throttling_of_each_verb(quiet_log: None) -> None:
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
