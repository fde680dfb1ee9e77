"""An execution that gives up without a node says what the nodes had to do with it, as its page did, and never fails because of that."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from grid.configuration import DEPLOYING_TIMEOUT
from grid.controller.controller import Controller
from grid.core.errors import NotAllowed
from grid.diagnosis.nodeshapes import NodeTemplate, TemplateTally
from grid.executions import cluster_snapshot as module
from grid.executions.cluster_snapshot import KEPT_SECONDS, PATIENCE_SECONDS, ClusterSnapshotLister
from grid.kube.events import EventStore
from grid.kube.objects import Node, Pod
from grid.kube.resources import CONFIG_MAPS, EVENTS, NODES, PODS, STORAGE_CLASSES, VOLUME_CLAIMS, Resource
from grid.models import Execution
from grid.tiers import pooltemplates
from tests.controller.test_controller import Configure
from tests.controller.world import World, fresh, in_world
from tests.support.builders import NAMESPACE, condition, config_map, decode, event, node, pod, stamp
from tests.support.cluster import FakeCluster
from tests.support.runtime import runtime_of
from tests.support.shop import NOW, OWNER, Shop
from tests.support.virtual import virtual_time

SAID = "0/1 nodes are available: 1 Insufficient cpu."
STATUS = """
nodeGroups:
- {name: default, health: {minSize: 0, maxSize: 1, cloudProviderTarget: 1}}
"""


def unscheduled(world: World, obj: Any) -> None:
    obj["status"] = {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", SAID)]}
    world.cluster.put(PODS, obj)


async def waits_for_a_node(shop: Shop, configure: Configure, world: World) -> tuple[Execution, Controller]:
    configure(DEPLOYING_TIMEOUT, 90)
    execution, controller = shop.launch(), world.controller()
    await world.step(controller)
    unscheduled(world, world.pod_of(execution))
    return execution, controller


async def given_up(shop: Shop, configure: Configure, world: World) -> Execution:
    """Return an execution that got no node in time, in the cluster of `world`."""
    execution, controller = await waits_for_a_node(shop, configure, world)
    world.passes(91)
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("error", "deploying_timeout")
    return execution


@in_world
async def test_node_group_of_other_name_is_the_pools(shop: Shop, configure: Configure) -> None:
    world = World()
    world.cluster.put(NODES, node("n1", labels={"eks.amazonaws.com/nodegroup": "work"}))
    world.cluster.put(PODS, pod("taker", node="n1", phase="Running", requests={"cpu": "4"}, labels={"of": "another"}))
    full = STATUS.replace("default", "eks-work-0cc1a2b3-4c5d-6e7f-8a9b-0c1d2e3f4a5b")
    world.cluster.put(CONFIG_MAPS, config_map("cluster-autoscaler-status", {"status": full}, namespace="kube-system"))
    execution = await given_up(shop, configure, world)
    assert "the pool has as many nodes as it may have (1)" in execution.words(OWNER)


def forbid_to_list(forbidden: Resource, world: World) -> None:
    controller_sees = world.cluster.list_page

    async def refused(resource: Resource, **options: Any) -> bytes:
        if resource == forbidden:
            raise NotAllowed(f"{resource.plural} is forbidden")
        return await controller_sees(resource, **options)

    world.cluster.list_page = refused  # type: ignore[method-assign]


@in_world
async def test_too_small_nodes_are_named_with_their_amounts(shop: Shop, configure: Configure) -> None:
    world = World()
    world.cluster.put(NODES, node("n1", cpu="500m"))
    execution = await given_up(shop, configure, world)
    assert (
        "No node took it within 90 seconds. Last known: No node of the pool default is large enough"
        in execution.words(OWNER)
    )
    assert "the largest has 0.5 cores" in execution.words(OWNER)
    assert "tell your admin that this one fits no node." in execution.words(OWNER)


@in_world
async def test_claim_without_volume_is_told_in_kubernetes_words(shop: Shop, configure: Configure) -> None:
    world = World()
    world.cluster.put(NODES, node("n1"))
    execution, controller = await waits_for_a_node(shop, configure, world)
    name = world.pod_of(execution)["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    claim = await world.cluster.get(VOLUME_CLAIMS, name, namespace=NAMESPACE)
    world.cluster.put(VOLUME_CLAIMS, claim | {"spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}})
    missing = 'storageclass.storage.k8s.io "fast" not found'
    world.cluster.put(EVENTS, event("e", about=claim, reason="ProvisioningFailed", message=missing, kind="Warning"))
    forbid_to_list(STORAGE_CLASSES, world)
    world.passes(91)
    await world.step(controller)
    assert "has no volume: there is no storage class fast." in fresh(execution).words(OWNER).replace("have", "has")


@in_world
async def test_scheduler_words_are_told_without_right_to_list_nodes(shop: Shop, configure: Configure) -> None:
    world = World()
    forbid_to_list(NODES, world)
    world.cluster.put(NODES, node("n1", cpu="500m"))
    message = (await given_up(shop, configure, world)).message
    assert "No node took it within 90 seconds. Last known: " in message
    assert "0.5 cores" not in message


def small_node_of(pool: str) -> NodeTemplate:
    """A remembered node of half a core."""
    tally = TemplateTally()
    tally.count(decode(node("seen-before", pool=pool, cpu="500m"), Node), {"cpu": 100})
    template = tally.template(NOW)
    assert template is not None
    return template


@in_world
async def test_pool_at_zero_is_explained_by_its_remembered_nodes(shop: Shop, configure: Configure) -> None:
    world = World()
    empty = STATUS.replace("cloudProviderTarget: 1", "cloudProviderTarget: 0")
    world.cluster.put(CONFIG_MAPS, config_map("cluster-autoscaler-status", {"status": empty}, namespace="kube-system"))
    templates = {"default": small_node_of("default")}
    pooltemplates.remember(templates, NOW)
    execution, controller = await waits_for_a_node(shop, configure, world)
    runtime = runtime_of(world.cluster)
    runtime.templates.take(templates)
    (waits,) = runtime.pods.values()
    world.passes(91)
    page = runtime.explainer.explain(waits, names_others=False, now=world.now)
    await world.step(controller)
    assert page.sentence == "There is no node of the pool default, and a new one would be too small."
    assert f"Last known: {page.sentence} {page.next_step}" in fresh(execution).words(OWNER)


# --- The list


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def nodes(self, cluster: FakeCluster) -> ClusterSnapshotLister:
        return ClusterSnapshotLister(
            cluster,
            NAMESPACE,
            templates=nothing_remembered,
            claim_events=EventStore().about_claim,
            clock=lambda: NOW + timedelta(seconds=self.seconds),
            monotonic=lambda: self.seconds,
        )


async def nothing_remembered() -> dict[str, NodeTemplate]:
    return {}


def waiting(*, created: float = -60) -> Pod:
    return decode(pod("w", creationTimestamp=stamp(NOW + timedelta(seconds=created))), Pod)


def a_cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(NODES, node("n1"))
    return cluster


@virtual_time
async def test_many_that_give_up_together_share_one_list() -> None:
    cluster, clock = a_cluster(), Clock()
    nodes = clock.nodes(cluster)
    first = await nodes.of(waiting())
    assert first is not None
    assert await nodes.of(waiting()) is first
    assert cluster.count("list", NODES) == 1
    clock.seconds = KEPT_SECONDS
    assert await nodes.of(waiting()) is not first, "it is old by now"


@virtual_time
async def test_pod_newer_than_list_is_not_judged_by_it() -> None:
    cluster, clock = a_cluster(), Clock()
    nodes = clock.nodes(cluster)
    first = await nodes.of(waiting())
    clock.seconds = 10
    assert await nodes.of(waiting(created=5)) is not first, "its claims are not in the first list"


@virtual_time
async def test_silent_api_server_costs_a_short_wait_only() -> None:
    cluster, clock = a_cluster(), Clock()
    cluster.list_seconds = 3600
    nodes, began = clock.nodes(cluster), asyncio.get_running_loop().time()
    assert await nodes.of(waiting()) is None
    clock.seconds = PATIENCE_SECONDS
    assert await nodes.of(waiting()) is None, "the next one is not to wait as well"
    assert asyncio.get_running_loop().time() - began < PATIENCE_SECONDS + 1
    await nodes.close()
    cluster.list_seconds = 0
    assert await nodes.of(waiting()) is not None


@virtual_time
async def test_only_sums_are_kept_of_too_many_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PODS", 500)
    cluster, nodes = a_cluster(), Clock()
    for number in range(1100):
        cluster.put(PODS, pod(f"p{number}", node="n1", phase="Running", requests={"cpu": "1"}))
    listed = nodes.nodes(cluster)
    scheduling = await listed.of(waiting())
    assert scheduling is not None
    assert (scheduling.room.requested("n1")["pods"], scheduling.room.amounts("n1").cpu) == (1100, 1_100_000)
    assert not list(scheduling.pods())
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
    choosy = pod("w", spec={"affinity": apart}, creationTimestamp=stamp(NOW - timedelta(seconds=60)))
    assert await listed.of(decode(choosy, Pod)) is None, "which pods are where is not known"


@virtual_time
async def test_a_message_names_no_pod_of_others() -> None:
    cluster = a_cluster()
    cluster.put(PODS, pod("secret-project", node="n1", phase="Running"))
    scheduling = await Clock().nodes(cluster).of(waiting())
    assert scheduling is not None
    assert [scheduling.holder(other) for other in scheduling.pods()] == ["another pod"]
