"""What changes while a cluster runs: its size, its head, and objects that somebody deletes."""

from typing import Any

import pytest

from grid.clusters import status
from grid.clusters.changes import resize, restart_head
from grid.core.errors import NotAllowed
from grid.executions.stopping import request_stop
from grid.kube.objects import RawObject
from grid.kube.resources import (
    AUTOSCALERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
    PODS,
    SERVICES,
    Resource,
)
from grid.models import Environment
from tests.clusters.test_cluster_life import left, notes, running_cluster, the, to_end, to_running
from tests.controller.world import World, fresh, in_world
from tests.support.builders import NAMESPACE
from tests.support.shop import OWNER, Shop
from tests.support.virtual import loop_time, passes


def autoscaler(world: World) -> RawObject:
    (scaler,) = world.cluster.objects(AUTOSCALERS)
    return scaler


def bounds(world: World) -> tuple[int, int]:
    spec = autoscaler(world)["spec"]
    return spec["minReplicas"], spec["maxReplicas"]


async def settle(world: World, controller: Any) -> None:
    """Long enough for slots to be given back, with the kubelet's work in between."""
    for _ in range(4):
        world.behave()
        await world.step(controller)
        await passes(31)


@in_world
async def test_more_workers_are_allowed_at_once(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    resize(execution, minimum=3, maximum=8, by="alice", now=world.now)
    await world.step(controller)
    assert (bounds(world), fresh(execution).slots) == ((3, 8), 9)
    revision = execution.revision
    await settle(world, controller)
    assert (len(world.workers_of(execution)), fresh(execution).slots, execution.revision) == (3, 9, revision)


@in_world
async def test_slots_return_when_surplus_workers_are_gone(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop, monotonic=loop_time)
    world.wanted[f"cluster-{execution.pk}-worker"] = 5
    for _ in range(3):
        world.behave()
    await world.step(controller)
    assert len(world.workers_of(execution)) == 5
    resize(execution, minimum=1, maximum=2, by="alice", now=world.now)
    await world.step(controller)
    assert (bounds(world), fresh(execution).slots) == ((1, 2), 6)
    world.autoscale()
    world.deployments.round()
    await world.step(controller)
    await passes(40)
    await world.step(controller)
    assert len(world.workers_of(execution)) == 2
    assert fresh(execution).slots == 6, "three workers are still draining"
    await settle(world, controller)
    assert fresh(execution).slots == 3
    assert len(world.pods()) == 3


@in_world
async def test_a_cluster_of_fixed_size_changes_its_deployment(shop: Shop) -> None:
    world, execution = World(), shop.launch_cluster(autoscale=False, workers_minimum=3, workers_maximum=3)
    controller = world.controller(monotonic=loop_time)
    await to_running(world, controller, execution)
    resize(execution, minimum=5, maximum=5, by="alice", now=world.now)
    await settle(world, controller)
    assert (len(world.workers_of(execution)), fresh(execution).slots) == (5, 6)
    resize(execution, minimum=1, maximum=1, by="alice", now=world.now)
    await settle(world, controller)
    assert (len(world.workers_of(execution)), fresh(execution).slots) == (1, 2)
    deployment = the(world, DEPLOYMENTS, f"cluster-{execution.pk}-worker")
    deployment["spec"]["replicas"] = 4  # somebody with kubectl
    world.cluster.put(DEPLOYMENTS, deployment)
    await controller.audit()
    await settle(world, controller)
    assert len(world.workers_of(execution)) == 1


@in_world
async def test_a_new_head_is_made_once_for_each_wish(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    await world.step(controller)
    first = world.head_of(execution)["metadata"]["uid"]
    world.passes(-3600)  # the clock of whoever writes the wish is not Kubernetes'
    restart_head(execution, by="alice", now=world.now)
    world.passes(3600)
    for _ in range(5):
        await world.step(controller)
        world.behave()
        controller = world.controller()
    second = world.head_of(execution)["metadata"]["uid"]
    assert first != second
    assert world.cluster.count("delete", PODS) == 1
    assert fresh(execution).state == "running"
    assert status.read(execution.status).head_pod == second
    (line,) = notes(execution, "head_replaced")
    assert "A new head answers on node node-1" in line.words(OWNER)
    assert "are lost" in line.words(OWNER)

    world.passes(60)
    restart_head(execution, by="alice", now=world.now)
    await world.rounds(controller, 5)
    assert world.head_of(execution)["metadata"]["uid"] != second
    assert len(notes(execution, "head_replaced")) == 2


@pytest.mark.parametrize(
    ("kind", "suffix"), [(AUTOSCALERS, "-worker"), (DEPLOYMENTS, "-head"), (SERVICES, "-head"), (NETWORK_POLICIES, "")]
)
@in_world
async def test_deleted_object_is_made_again_and_told(shop: Shop, kind: Resource, suffix: str) -> None:
    Environment.objects.update(variables={"MODE": "fast"})  # so that it has a Secret, too
    world, controller, execution = await running_cluster(shop)
    name = f"cluster-{execution.pk}{suffix}"
    before = the(world, kind, name)
    world.cluster.remove(kind, name, namespace=NAMESPACE)
    await controller.audit()
    await world.rounds(controller, 4)
    assert the(world, kind, name)["spec"] == before["spec"], "a Service has its old address"
    (line,) = notes(execution, "made_again")
    assert line.level == "Warning"
    assert line.words(OWNER) == f"{kind.kind} {name} had been deleted; it was created again."
    assert fresh(execution).state == "running"


@in_world
async def test_deleted_anchor_takes_everything_and_all_is_made_again(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    world.cluster.remove(CONFIG_MAPS, execution.object_name, namespace=NAMESPACE)
    assert world.cluster.objects(DEPLOYMENTS) == []
    await world.rounds(controller, 6)
    assert (fresh(execution).state, execution.reason) == ("running", "ready")
    assert len(world.workers_of(execution)) == 2
    request_stop(execution, by="alice", now=world.now)
    await to_end(world, controller, execution)
    assert left(world) == []


@in_world
async def test_workers_are_told_the_new_address_of_their_head(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    name = f"cluster-{execution.pk}-head"
    old = the(world, SERVICES, name)["spec"]["clusterIP"]
    world.cluster.remove(SERVICES, name, namespace=NAMESPACE)
    theirs = {"metadata": {"name": "theirs", "namespace": NAMESPACE}, "spec": {"clusterIP": old}}
    world.cluster.put(SERVICES, theirs)
    await controller.audit()
    await world.rounds(controller, 5)
    new = the(world, SERVICES, name)["spec"]["clusterIP"]
    assert new != old
    assert status.read(fresh(execution).status).head_address == new
    workers = world.workers_of(execution)
    assert len(workers) == 2
    assert all(new in str(pod["spec"]) and old not in str(pod["spec"]) for pod in workers)
    assert new in notes(execution, "moved")[0].message


@in_world
async def test_a_changed_autoscaler_is_set_right_without_an_audit(shop: Shop) -> None:
    world, controller, _ = await running_cluster(shop)
    changed = autoscaler(world)
    changed["spec"]["maxReplicas"] = 50
    world.cluster.put(AUTOSCALERS, changed)
    await world.step(controller)
    assert bounds(world) == (2, 5)


@in_world
async def test_object_that_cannot_be_made_again_is_told(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    world.cluster.remove(DISRUPTION_BUDGETS, f"cluster-{execution.pk}-head", namespace=NAMESPACE)
    await controller.audit()
    world.cluster.fail_next(NotAllowed("exceeded quota"), times=3, verb="create")
    for _ in range(6):
        await world.step(controller)
        await passes(30)
    (line,) = notes(execution, "not_made_again")
    assert "does not allow creating it again: exceeded quota" in line.words(OWNER)
    assert len(notes(execution, "made_again")) == 1


@in_world
async def test_audit_reads_whole_objects_only_to_compare_specs(shop: Shop) -> None:
    world, controller, _ = await running_cluster(shop)
    whole, list_page = set(), world.cluster.list_page

    async def noted(resource: Resource, **options: Any) -> bytes:
        if not options["metadata_only"]:
            whole.add(resource)
        return await list_page(resource, **options)

    world.cluster.list_page = noted  # type: ignore[method-assign]
    await controller.audit()
    assert whole == {DEPLOYMENTS}
