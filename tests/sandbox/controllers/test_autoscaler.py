"""The node autoscaler at work on the embedded API server: a pool grows for a pod, and shrinks when nobody needs the node."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from grid.core.labels import DELETION_CANDIDATE_TAINT, TO_BE_DELETED_TAINT
from grid.sandbox.client import CONFIG_MAPS, EVENTS, NODES, PODS, Api, Mirrors, Object, name_of
from grid.sandbox.controllers.autoscaler import AutoscalerSettings, ClusterAutoscaler
from grid.sandbox.controllers.deployment import DeploymentController
from grid.sandbox.controllers.nodelifecycle import NodeLifecycleController, NodeTimeouts
from grid.sandbox.controllers.removal import mark
from grid.sandbox.controllers.replicaset import ReplicaSetController
from grid.sandbox.controllers.scheduler import Scheduler
from grid.sandbox.poollimits import NodePools
from grid.sandbox.pools import NodePool, PoolTaint
from tests.sandbox.support import (
    FakeKubelet,
    FastClock,
    add_node,
    api_server,
    make_deployment,
    make_node,
    make_pod,
    running,
)
from tests.support.waiting import eventually

CPU = {"cpu": "8", "memory": "32Gi", "pods": "110"}
GPU_TAINT = PoolTaint("nvidia.com/gpu", "present", "NoSchedule")
POOLS = (
    NodePool("default", "m5.2xlarge", CPU, minimum=1, maximum=3, initial=1),
    NodePool("default-gpu", "g4dn.xlarge", CPU | {"nvidia.com/gpu": "1"}, minimum=0, maximum=2, taints=(GPU_TAINT,)),
)
UNNEEDED = 20.0
BOOT = 5.0


@dataclass(slots=True)
class FakeCloud:
    """Machines that join as nodes, first not ready, then ready."""

    client: Api
    clock: FastClock
    machines: dict[str, list[str]] = field(default_factory=lambda: {pool.name: [] for pool in POOLS})
    stock_out: bool = False
    created: int = 0
    _boots: list[asyncio.Task[None]] = field(default_factory=list)

    def instances(self, pool: str) -> list[str]:
        return list(self.machines[pool])

    async def create(self, pool: str) -> str:
        if self.stock_out:
            raise OSError("no machine of this type is left")
        self.created += 1
        name = f"{pool}-{self.created}"
        self.machines[pool].append(name)
        self._boots.append(asyncio.create_task(self._boot(pool, name)))
        return name

    async def _boot(self, pool: str, name: str) -> None:
        template = next(item for item in POOLS if item.name == pool)
        node = make_node(name, labels=template.node_labels(name), taints=template.node_taints(), ready=False)
        node["status"]["allocatable"] = node["status"]["capacity"] = dict(template.capacity)
        await self.clock.sleep(BOOT)
        await add_node(self.client, node)
        await self.clock.sleep(1.0)
        ready = make_node(name)["status"]["conditions"]
        await self.client.patch(NODES.path(name=name, subresource="status"), {"status": {"conditions": ready}})

    async def close(self) -> None:
        for boot in self._boots:
            boot.cancel()
        results = await asyncio.gather(*self._boots, return_exceptions=True)
        assert not [result for result in results if isinstance(result, Exception)]

    async def delete(self, node_name: str) -> None:
        for names in self.machines.values():
            if node_name in names:
                names.remove(node_name)


@dataclass(slots=True)
class Bench:
    """A cluster with its autoscaler, and what an onlooker sees of it."""

    client: Api
    clock: FastClock
    cloud: FakeCloud
    pools: NodePools
    seen: Mirrors
    taints: set[str] = field(default_factory=set)

    def events(self, reason: str) -> list[Object]:
        return [event for event in self.seen.of(EVENTS).values() if event["reason"] == reason]

    def messages(self, reason: str) -> set[str]:
        return {event["message"] for event in self.events(reason)}

    def nodes(self) -> set[str]:
        return {name_of(node) for node in self.seen.of(NODES).values()}

    def node_of(self, pod: str) -> str:
        stored = self.seen.of(PODS).get(f"default/{pod}")
        return stored["spec"].get("nodeName", "") if stored else ""

    def status(self) -> Object:
        config_map = self.seen.of(CONFIG_MAPS).get("kube-system/cluster-autoscaler-status")
        loaded: Object = yaml.safe_load(config_map["data"]["status"]) if config_map else {}
        return loaded

    def group(self, name: str) -> Object:
        return next((group for group in self.status().get("nodeGroups", ()) if group["name"] == name), {})

    def note_taints(self, old: Object | None, new: Object | None) -> None:
        self.taints |= _taints(new)


@asynccontextmanager
async def cluster(folder: Path, *, unneeded: float = UNNEEDED, stock_out: bool = False) -> AsyncIterator[Bench]:
    clock = FastClock(speed=10)
    async with api_server(folder, clock) as client:
        cloud = FakeCloud(client, clock, stock_out=stock_out)
        pools = NodePools(POOLS, folder / "pools.json")
        bench = Bench(client, clock, cloud, pools, Mirrors(client, clock=clock))
        for resource in (EVENTS, NODES, PODS, CONFIG_MAPS):
            bench.seen.of(resource)
        bench.seen.of(NODES).subscribe(bench.note_taints)
        await add_node(client, make_node("default-0", labels=POOLS[0].node_labels("default-0")))
        cloud.machines["default"].append("default-0")
        settings = AutoscalerSettings(scan_seconds=2.0, unneeded_seconds=unneeded, backoff_seconds=10.0)
        parts = (
            Scheduler(client, clock=clock),
            DeploymentController(client, clock=clock),
            ReplicaSetController(client, clock=clock),
            # Nobody renews a heartbeat here.
            NodeLifecycleController(client, clock=clock, patience=NodeTimeouts(grace=1e6, period=0.5)),
            FakeKubelet(client, clock),
            ClusterAutoscaler(client, cloud=cloud, pools=pools, settings=settings, clock=clock),
        )
        async with bench.seen.running(), running(*parts):
            yield bench
        await cloud.close()


def _taints(node: Object | None) -> set[str]:
    return {taint["key"] for taint in (node or {}).get("spec", {}).get("taints") or ()}


def gpu_pod(name: str) -> Object:
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists"}
    return make_pod(name, requests={"cpu": "1", "nvidia.com/gpu": "1"}, tolerations=[toleration])


async def test_gpu_pod_brings_a_node_that_goes_when_idle(tmp_path: Path) -> None:
    async with cluster(tmp_path) as bench:
        await bench.client.create(PODS.path("default"), gpu_pod("train"))
        await eventually(lambda: bench.node_of("train") == "default-gpu-1", "the pod is on the new node")
        assert bench.messages("TriggeredScaleUp") == {"pod triggered scale-up: [{default-gpu 0->1 (max: 2)}]"}
        assert bench.messages("ScaledUpGroup") == {
            "Scale-up: setting group default-gpu size to 1 instead of 0 (max: 2)",
            "Scale-up: group default-gpu size set to 1 instead of 0 (max: 2)",
        }
        assert bench.cloud.created == 1
        # The first words may come from before the node lifecycle took the not-ready taint away.
        assert any("1 Insufficient nvidia.com/gpu" in text for text in bench.messages("FailedScheduling"))
        await eventually(lambda: bench.group("default-gpu").get("health", {}).get("cloudProviderTarget") == 1, "status")
        assert bench.group("default-gpu")["health"]["maxSize"] == 2
        await bench.client.delete(PODS.path("default", "train"))
        await eventually(lambda: bench.nodes() == {"default-0"}, "the idle node is removed")
        assert {DELETION_CANDIDATE_TAINT, TO_BE_DELETED_TAINT} <= bench.taints
        assert bench.messages("ScaleDown") == {"marked the node as toBeDeleted/unschedulable"}
        await eventually(
            lambda: (
                bench.messages("ScaleDownEmpty")
                == {'Scale-down: removing empty node "default-gpu-1"', "Scale-down: empty node default-gpu-1 removed"}
            ),
            "the removal is told",
        )
        assert bench.cloud.machines["default-gpu"] == []


async def test_a_pool_at_its_maximum_says_so(tmp_path: Path) -> None:
    async with cluster(tmp_path) as bench:
        for index in range(3):
            await bench.client.create(PODS.path("default"), gpu_pod(f"train-{index}"))
        await eventually(lambda: bench.events("NotTriggerScaleUp"), "the third pod is refused")
        message = "pod didn't trigger scale-up: 1 Insufficient nvidia.com/gpu, 1 max node group size reached"
        assert bench.messages("NotTriggerScaleUp") == {message}
        await eventually(lambda: len([1 for n in range(3) if bench.node_of(f"train-{n}")]) == 2, "two of three run")
        assert bench.cloud.created == 2


async def test_pods_of_hardly_used_node_move_and_it_goes(tmp_path: Path) -> None:
    async with cluster(tmp_path, unneeded=6.0) as bench:
        body = make_deployment("web", 3, cpu="3")
        await bench.client.create("/apis/apps/v1/namespaces/default/deployments", body)
        await eventually(lambda: len(bench.nodes()) == 2, "a second node for the third pod")
        await bench.client.patch("/apis/apps/v1/namespaces/default/deployments/web", {"spec": {"replicas": 2}})
        await eventually(lambda: len(bench.nodes()) == 1, "one node is enough for two")
        pods = [pod for pod in bench.seen.of(PODS).values() if not pod["metadata"].get("deletionTimestamp")]
        await eventually(
            lambda: {pod["spec"].get("nodeName") for pod in bench.seen.of(PODS).values()} == bench.nodes(),
            "both pods are on the node that is left",
        )
        assert len(pods) <= 2
        assert len(bench.cloud.machines["default"]) == 1


async def test_a_stock_out_is_told_and_tried_again_later(tmp_path: Path) -> None:
    async with cluster(tmp_path, stock_out=True) as bench:
        await bench.client.create(PODS.path("default"), gpu_pod("train"))
        await eventually(lambda: bench.events("FailedToScaleUpGroup"), "the failure")
        assert bench.messages("FailedToScaleUpGroup") == {
            "Scale-up failed for group default-gpu: no machine of this type is left"
        }
        assert not bench.events("TriggeredScaleUp")
        await eventually(lambda: bench.group("default-gpu").get("scaleUp", {}).get("status") == "Backoff", "backoff")
        bench.cloud.stock_out = False
        await eventually(lambda: bench.node_of("train"), "the pod runs after all")


async def test_unfinished_removal_of_earlier_process_is_cancelled(tmp_path: Path) -> None:
    clock = FastClock(speed=10)
    async with api_server(tmp_path, clock) as client:
        cloud = FakeCloud(client, clock)
        await add_node(client, make_node("default-0", labels=POOLS[0].node_labels("default-0")))
        cloud.machines["default"].append("default-0")
        await mark(client, "default-0", TO_BE_DELETED_TAINT, "1795236611", "NoSchedule")
        autoscaler = ClusterAutoscaler(client, cloud=cloud, pools=POOLS, clock=clock)
        seen = Mirrors(client, clock=clock)
        nodes = seen.of(NODES)
        async with seen.running():
            await eventually(lambda: TO_BE_DELETED_TAINT in _taints(nodes.get("default-0")), "the old taint is seen")
            async with running(autoscaler):
                await eventually(lambda: TO_BE_DELETED_TAINT not in _taints(nodes.get("default-0")), "it is gone")


async def test_changed_limits_hold_from_the_next_round(tmp_path: Path) -> None:
    async with cluster(tmp_path) as bench:
        await eventually(lambda: bench.group("default"), "the first round is published")
        now = next(pool for pool in bench.pools if pool.name == "default")
        bench.pools.limit("default", 2, 7, was=(now.minimum, now.maximum))
        await eventually(lambda: len(bench.nodes()) == 2, "the minimum is filled up")
        await eventually(lambda: bench.group("default")["health"]["maxSize"] == 7, "the new maximum is published")
