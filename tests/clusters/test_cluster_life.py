"""The way of a cluster: created in the right order, ready when head and first worker are, stopped when nothing can come back."""

from collections.abc import Callable
from typing import Any

from grid.clusters import status
from grid.configuration import DEPLOYING_TIMEOUT, PREPARING_TIMEOUT
from grid.controller.controller import Controller
from grid.core.errors import NotAllowed
from grid.executions.policykeeper import EXECUTIONS, USER_INTERFACES
from grid.executions.stopping import request_stop
from grid.kube.objects import RawObject
from grid.kube.resources import (
    AUTOSCALERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
    PODS,
    REPLICA_SETS,
    SECRETS,
    SERVICES,
    VOLUME_CLAIMS,
)
from grid.models import Execution, LifecycleEntry
from tests.controller.world import World, fresh, in_world, states_of
from tests.support.builders import NAMESPACE
from tests.support.shop import OWNER, Shop
from tests.support.virtual import passes

Configure = Callable[[Any, int], None]
OWNED = (
    PODS,
    CONFIG_MAPS,
    SECRETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    SERVICES,
    AUTOSCALERS,
    NETWORK_POLICIES,
    DISRUPTION_BUDGETS,
)
UP = ["queued", "deploying", "preparing", "running"]


async def to_running(world: World, controller: Any, execution: Execution) -> None:
    for _ in range(8):
        await world.step(controller)
        if fresh(execution).state == "running":
            return
        world.behave()
    raise AssertionError(f"not running: {states_of(execution)} {execution.words(OWNER)}")


def queued_cluster(shop: Shop, **settings: Any) -> tuple[World, Controller, Execution]:
    world, execution = World(), shop.launch_cluster()
    return world, world.controller(**settings), execution


async def running_cluster(shop: Shop, **settings: Any) -> tuple[World, Controller, Execution]:
    """A world, its controller with these settings, and a cluster in it that runs."""
    world, controller, execution = queued_cluster(shop, **settings)
    await to_running(world, controller, execution)
    return world, controller, execution


async def to_end(world: World, controller: Any, execution: Execution) -> None:
    for _ in range(8):
        await world.step(controller)
        if fresh(execution).is_final and execution.slots_freed_at:
            return
        world.behave()
        await passes(6)
    raise AssertionError(f"not ended: {states_of(execution)} {execution.words(OWNER)}")


def left(world: World) -> list[RawObject]:
    """But for the policies of the whole namespace, which the leader keeps."""
    items = [item for kind in OWNED for item in world.cluster.objects(kind)]
    return [item for item in items if item["metadata"]["name"] not in (EXECUTIONS, USER_INTERFACES)]


def the(world: World, kind: Any, name: str) -> RawObject:
    (items,) = [item for item in world.cluster.objects(kind) if item["metadata"]["name"] == name]
    return items


def notes(execution: Execution, reason: str) -> list[LifecycleEntry]:
    return list(LifecycleEntry.objects.filter(execution=execution, reason=reason).order_by("id"))


@in_world
async def test_cluster_comes_up_and_stops_without_leftovers(shop: Shop) -> None:
    world, controller, execution = queued_cluster(shop)
    await world.step(controller)
    address = the(world, SERVICES, f"cluster-{execution.pk}-head")["spec"]["clusterIP"]
    assert status.read(fresh(execution).status).head_address == address
    assert (execution.state, execution.reason) == ("deploying", "created")
    assert world.cluster.objects(AUTOSCALERS)[0]["spec"]["maxReplicas"] == 5

    await to_running(world, controller, execution)
    assert states_of(execution) == UP
    assert (execution.node_name, execution.started_at, execution.words(OWNER)) == ("node-1", world.now, "")
    assert (len(world.pods()), execution.slots) == (3, 6)

    world.cluster.set_log(
        world.head_of(execution)["metadata"]["name"], ["head says"], namespace=NAMESPACE, container="run"
    )
    request_stop(execution, by="bob", now=world.now)
    await world.step(controller)
    assert (fresh(execution).state, execution.slots_freed_at) == ("stopping", None)
    world.behave()
    assert world.members(execution, "worker") == [], "no Deployment makes new ones"
    await to_end(world, controller, execution)
    assert states_of(execution) == [*UP, "stopping", "stopped"]
    assert (execution.slots_freed_at, execution.log.text) == (world.now, "head says\n")
    assert "bob" in execution.words(OWNER)
    assert left(world) == []
    assert [claim["metadata"]["name"] for claim in world.cluster.objects(VOLUME_CLAIMS)] == ["project-churn"]


@in_world
async def test_head_without_workers_waits_for_the_first(shop: Shop) -> None:
    world, controller, execution = queued_cluster(shop)
    await world.step(controller)
    world.behave()
    world.schedule(world.head_of(execution))
    await world.step(controller)
    assert (fresh(execution).state, execution.node_name) == ("preparing", "node-1")
    assert "is preparing the head" in execution.words(OWNER)
    world.start(world.head_of(execution))
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("preparing", "head_ready")
    assert "waits for the first worker" in execution.words(OWNER)
    world.schedule(world.workers_of(execution)[0], "node-2")
    world.start(world.workers_of(execution)[0])
    await world.step(controller)
    assert fresh(execution).state == "running", "the others may come later"


@in_world
async def test_timeouts_say_whether_head_or_first_worker_was_awaited(shop: Shop, configure: Configure) -> None:
    no_node = "No node took the head within 90 seconds. Last known:"
    for stage, reason, words in (
        ("nothing", "deploying_timeout", f"{no_node} The cluster refuses to create the head: exceeded quota Ask your"),
        ("unscheduled", "deploying_timeout", f"{no_node} The cluster has no node."),
        ("starting", "preparing_timeout", "The head was not ready within 90 seconds. Last known: Node node-1 was"),
        (
            "head",
            "preparing_timeout",
            "The head is ready, but no worker was within 90 seconds. Last known: The cluster has no node",
        ),
    ):
        configure(DEPLOYING_TIMEOUT, 3600)
        configure(PREPARING_TIMEOUT, 3600)
        world, controller, execution = queued_cluster(shop)
        await world.step(controller)
        world.deployments.refused = "exceeded quota" if stage == "nothing" else ""
        world.behave()
        if stage == "nothing":
            replica_set = next(
                item for item in world.cluster.objects(REPLICA_SETS) if "-head-" in item["metadata"]["name"]
            )
            world.says(replica_set, "FailedCreate", "exceeded quota", kind="Warning", about="ReplicaSet")
        if stage in ("starting", "head"):
            world.schedule(world.head_of(execution))
        if stage == "head":
            world.start(world.head_of(execution))
        await world.step(controller)
        configure(DEPLOYING_TIMEOUT, 90)
        configure(PREPARING_TIMEOUT, 90)
        world.passes(91)
        await to_end(world, controller, execution)
        assert (fresh(execution).state, execution.reason) == ("error", reason), stage
        assert words in execution.words(OWNER)
        assert left(world) == []


@in_world
async def test_used_up_namespace_quota_is_waited_for(shop: Shop) -> None:
    world, controller, execution = queued_cluster(shop)
    world.cluster.fail_next(NotAllowed("exceeded quota: services"), verb="create")
    await world.step(controller)
    assert (fresh(execution).state, execution.words(OWNER)) == (
        "deploying",
        "The cluster does not allow it: exceeded quota: services",
    )
    await passes(15)
    await to_running(world, controller, execution)


@in_world
async def test_stop_at_each_moment_ends_and_frees_slots(shop: Shop) -> None:
    for rounds in range(5):
        world, controller, execution = queued_cluster(shop)
        await world.rounds(controller, rounds)
        request_stop(execution, by="alice", now=world.now)
        for _ in range(5):
            await world.step(controller)
            world.behave()
            await passes(6)
        assert fresh(execution).state == "stopped"
        assert bool(execution.slots_reserved_at) == bool(execution.slots_freed_at) == (rounds > 0)
        assert left(world) == []


@in_world
async def test_slots_stay_while_something_can_still_make_pods(shop: Shop) -> None:
    """The pods are gone, but a ReplicaSet that lost its owner is left."""
    world, controller, execution = await running_cluster(shop)
    orphan = world.cluster.objects(REPLICA_SETS)[0]
    del orphan["metadata"]["ownerReferences"]
    world.cluster.put(REPLICA_SETS, orphan)
    request_stop(execution, by="alice", now=world.now)
    for pod in world.pods():
        world.cluster.remove(PODS, pod["metadata"]["name"], namespace=NAMESPACE)
    await world.step(controller)
    assert (fresh(execution).state, execution.slots_freed_at) == ("stopping", None)
    await to_end(world, controller, execution)
    assert left(world) == []


@in_world
async def test_unchanged_cluster_causes_no_writes_and_few_requests(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    for _ in range(3):
        await world.step(controller)
    before, requests = fresh(execution).revision, world.cluster.count()
    for _ in range(3):
        await world.step(controller)
        await controller.audit()
    assert fresh(execution).revision == before
    assert world.cluster.count() == requests + 3 * 6, "one list per kind"
    successor, requests = world.controller(), world.cluster.count()
    for _ in range(2):
        await world.step(successor)
    assert world.cluster.count() - requests < 12, "a new controller reads the objects once"
    assert world.cluster.count("patch") == 0
