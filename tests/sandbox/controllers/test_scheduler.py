"""The scheduler at work on the embedded API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from grid.sandbox.client import EVENTS, PODS, Client, Mirrors, Object, condition_of, name_of
from grid.sandbox.controllers.scheduler import Scheduler
from grid.sandbox.controllers.scheduling import schedule
from tests.sandbox.support import FastClock, add_node, api_server, make_node, make_pod, running
from tests.support.waiting import eventually


@dataclass(slots=True)
class Bench:
    client: Client
    seen: Mirrors

    async def add(self, pod: Object) -> None:
        await self.client.create(PODS.path("default"), pod)

    def pod(self, name: str) -> Object:
        return self.seen.of(PODS).get(f"default/{name}") or {"spec": {}, "metadata": {}}

    def node_of(self, name: str) -> str:
        return self.pod(name)["spec"].get("nodeName") or ""

    def refusal(self, name: str) -> str:
        condition = condition_of(self.pod(name), "PodScheduled") or {}
        return str(condition.get("message", ""))

    def events(self, reason: str) -> list[Object]:
        return [event for event in self.seen.of(EVENTS).values() if event["reason"] == reason]


@asynccontextmanager
async def bench(folder: Path, *nodes: Object) -> AsyncIterator[Bench]:
    clock = FastClock(speed=10)
    async with api_server(folder, clock) as client:
        for node in nodes:
            await add_node(client, node)
        seen = Mirrors(client, clock=clock)
        for resource in (EVENTS, PODS):
            seen.of(resource)
        async with seen.running(), running(Scheduler(client, clock=clock)):
            yield Bench(client, seen)


async def test_unschedulable_pod_says_why_and_is_placed_later(tmp_path: Path) -> None:
    async with bench(tmp_path, make_node("a", cpu="2")) as cluster:
        await cluster.add(make_pod("big", requests={"cpu": "4"}))
        await eventually(lambda: cluster.refusal("big"), "the refusal")
        assert cluster.refusal("big") == (
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        assert cluster.events("FailedScheduling")[0]["type"] == "Warning"
        await add_node(cluster.client, make_node("b", cpu="8"))
        await eventually(lambda: cluster.node_of("big") == "b", "the pod takes the new node")
        (scheduled,) = await eventually(lambda: cluster.events("Scheduled"), "the event")
        assert scheduled["message"] == "Successfully assigned default/big to b"
        assert scheduled["source"]["component"] == "default-scheduler"


async def test_node_is_never_overcommitted_by_concurrent_pods(tmp_path: Path) -> None:
    async with bench(tmp_path, make_node("a", cpu="4"), make_node("b", cpu="4")) as cluster:
        await asyncio.gather(*(cluster.add(make_pod(f"p{index}", requests={"cpu": "1"})) for index in range(12)))
        pods = [f"p{index}" for index in range(12)]
        await eventually(
            lambda: (
                len([name for name in pods if cluster.node_of(name)]) == 8
                and len([name for name in pods if cluster.refusal(name)]) == 4
            ),
            "eight run and four are refused",
        )
        for node in ("a", "b"):
            assert len([name for name in pods if cluster.node_of(name) == node]) == 4
        await cluster.client.delete(PODS.path("default", next(n for n in pods if cluster.node_of(n))), grace_seconds=0)
        await eventually(
            lambda: len([n for n in pods if cluster.node_of(n)]) == 8, "a waiting pod takes the free place"
        )


async def test_a_pod_of_another_scheduler_is_left_alone(tmp_path: Path) -> None:
    async with bench(tmp_path, make_node("a")) as cluster:
        await cluster.add(make_pod("theirs", schedulerName="volcano"))
        await cluster.add(make_pod("ours"))
        await eventually(lambda: cluster.node_of("ours"), "ours is bound")
        assert not cluster.node_of("theirs")
        assert not cluster.refusal("theirs")


def test_pods_spread_over_equal_nodes_and_follow_preferences() -> None:
    nodes = [make_node("a"), make_node("b", labels={"disk": "fast"})]
    there = [make_pod("there", requests={"cpu": "2"}, nodeName="a")]
    assert schedule(make_pod("p", requests={"cpu": "1"}), nodes, there).node == "b"
    there = [make_pod("there", requests={"cpu": "500m"}, nodeName="b")]
    preference = {
        "weight": 100,
        "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]},
    }
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}
    assert schedule(make_pod("p", requests={"cpu": "1"}), nodes, there).node == "a"
    assert schedule(make_pod("p", requests={"cpu": "1"}, affinity=affinity), nodes, there).node == "b"


def test_node_about_to_be_removed_is_last_choice() -> None:
    taint = {"key": "DeletionCandidateOfClusterAutoscaler", "value": "1", "effect": "PreferNoSchedule"}
    nodes = [make_node("a", taints=[taint]), make_node("b")]
    there = [make_pod("there", requests={"cpu": "4"}, nodeName="b")]
    assert schedule(make_pod("p", requests={"cpu": "1"}), nodes, there).node == "b"
    assert schedule(make_pod("p", requests={"cpu": "6"}), nodes, there).node == "a"
    assert name_of(nodes[0]) == "a"
