"""Nodes that fall silent are noticed, their pods leave or are cleared away, and nothing is cleared away on hearsay."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.client import EVENTS, LEASES, NODES, PODS, Client, Mirrors, Object, condition_of, format_micro_time
from grid.sandbox.controllers.nodehealth import leaves_after, wanted_taints
from grid.sandbox.controllers.nodelifecycle import NodeLifecycleController, NodeTimeouts
from tests.sandbox.support import START, FastClock, add_node, api_server, make_node, make_pod, running
from tests.support.waiting import eventually

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@dataclass(slots=True)
class Bench:
    client: Client
    clock: FastClock
    seen: Mirrors

    def taints(self, name: str) -> set[tuple[str, str]]:
        node: Object = self.seen.of(NODES).get(name) or {}
        return {(taint["key"], taint["effect"]) for taint in node.get("spec", {}).get("taints") or ()}

    def pod(self, name: str) -> Object | None:
        return self.seen.of(PODS).get(f"default/{name}")

    def reasons(self) -> set[str]:
        return {event["reason"] for event in self.seen.of(EVENTS).values()}


@asynccontextmanager
async def bench(folder: Path, patience: NodeTimeouts) -> AsyncIterator[Bench]:
    clock = FastClock(speed=10)
    async with api_server(folder, clock) as client:
        seen = Mirrors(client, clock=clock)
        for resource in (NODES, PODS, EVENTS):
            seen.of(resource)
        controller = NodeLifecycleController(client, clock=clock, patience=patience)
        async with seen.running(), running(controller):
            yield Bench(client, clock, seen)


async def add_pod(cluster: Bench, name: str, node: str, **spec: Any) -> None:
    await cluster.client.create(PODS.path("default"), make_pod(name, nodeName=node, **spec))


async def test_silent_node_becomes_unknown_and_evicts_intolerant_pods(tmp_path: Path) -> None:
    async with bench(tmp_path, NodeTimeouts(grace=4.0, period=0.5)) as cluster:
        await add_node(cluster.client, make_node("a"))
        await add_pod(cluster, "patient", "a", tolerations=[{"operator": "Exists"}])
        soon = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
            for key in (NOT_READY, UNREACHABLE)
        ]
        await add_pod(cluster, "hasty", "a", tolerations=soon)
        await eventually(lambda: (UNREACHABLE, "NoExecute") in cluster.taints("a"), "the node is unreachable")
        node: Object = cluster.seen.of(NODES).get("a") or {}
        ready = condition_of(node, "Ready") or {}
        assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
        assert ready["message"] == "Kubelet stopped posting node status."
        await eventually(
            lambda: (cluster.pod("hasty") or {"metadata": {}})["metadata"].get("deletionTimestamp"), "eviction"
        )
        target = condition_of(cluster.pod("hasty") or {}, "DisruptionTarget") or {}
        assert target["reason"] == "DeletionByTaintManager"
        assert target["message"] == "Taint manager: deleting due to NoExecute taint"
        assert not (cluster.pod("patient") or {})["metadata"].get("deletionTimestamp")
        await eventually(lambda: {"NodeNotReady", "TaintManagerEviction"} <= cluster.reasons(), "events")


async def test_a_node_that_renews_its_lease_stays_ready(tmp_path: Path) -> None:
    async with bench(tmp_path, NodeTimeouts(grace=15.0, period=0.5)) as cluster:
        await add_node(cluster.client, make_node("a"))
        path = LEASES.path("kube-node-lease")
        lease: Object = {
            "apiVersion": LEASES.api_version,
            "kind": "Lease",
            "metadata": {"name": "a"},
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 40},
        }
        await cluster.client.create(path, lease)
        for _ in range(8):
            await cluster.clock.sleep(2.5)
            renewed = {"spec": {"renewTime": format_micro_time(cluster.clock.now())}}
            await cluster.client.patch(f"{path}/a", renewed)
        assert not cluster.taints("a")
        await eventually(lambda: (UNREACHABLE, "NoSchedule") in cluster.taints("a"), "silence is noticed afterwards")


async def test_pods_of_a_gone_node_are_deleted_permanently(tmp_path: Path) -> None:
    async with bench(tmp_path, NodeTimeouts(grace=1e6, period=0.5, quarantine=2.0)) as cluster:
        await add_node(cluster.client, make_node("a"))
        await add_node(cluster.client, make_node("b"))
        await add_pod(cluster, "lost", "a")
        await add_pod(cluster, "safe", "b")
        await cluster.client.delete(NODES.path(name="a"))
        await eventually(lambda: cluster.pod("lost") is None, "the lost pod is gone")
        assert cluster.pod("safe") is not None


@pytest.mark.parametrize("kind", ["Memory", "Disk", "PID"])
def test_pressure_keeps_new_pods_off(kind: str) -> None:
    node = make_node("a")
    node["status"]["conditions"].append({"type": f"{kind}Pressure", "status": "True"})
    key = f"node.kubernetes.io/{kind.lower()}-pressure"
    assert wanted_taints(node, START) == [{"key": key, "effect": "NoSchedule"}]


def test_foreign_taints_stay_and_outdated_own_ones_go() -> None:
    foreign = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    node = make_node("a", taints=[foreign, {"key": NOT_READY, "effect": "NoSchedule"}])
    assert wanted_taints(node, START) == [foreign]
    node["spec"]["unschedulable"] = True
    assert [taint["key"] for taint in wanted_taints(node, START)] == [
        "nvidia.com/gpu",
        "node.kubernetes.io/unschedulable",
    ]


def test_the_shortest_toleration_decides_when_a_pod_leaves() -> None:
    node = make_node("a", taints=[{"key": NOT_READY, "effect": "NoExecute"}, {"key": "mine", "effect": "NoExecute"}])
    assert leaves_after(make_pod("p"), node) == 0
    assert leaves_after(make_pod("p", tolerations=[{"operator": "Exists"}]), node) is None
    some = [
        {"key": NOT_READY, "operator": "Exists", "tolerationSeconds": 300},
        {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10},
        {"key": "mine", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
    ]
    assert leaves_after(make_pod("p", tolerations=some), node) == 30, "of each taint the first toleration counts"
    assert leaves_after(make_pod("p", tolerations=some[:2]), node) == 0, "one taint is not tolerated at all"
    assert leaves_after(make_pod("p"), make_node("b")) is None
