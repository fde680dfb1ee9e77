"""The scheduler: at work on the embedded API server, in the words of recorded situations, and who has to leave for whom."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.client import EVENTS, PODS, Client, Mirrors, Object, condition_of, name_of
from grid.sandbox.controllers.scheduler import Scheduler
from grid.sandbox.controllers.scheduling import SchedulingDecision, schedule
from tests.sandbox.support import FakeKubelet, FastClock, add_node, api_server, make_node, make_pod, running
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


RULES_ABOUT_OTHERS = ("anti-affinity", "pod-affinity", "topology-spread")
RECORDED = Path("tests/recordings/scheduling/cases.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [case for case in map(json.loads, RECORDED) if not any(rule in case["case"] for rule in RULES_ABOUT_OTHERS)]


def test_every_other_situation_is_compared() -> None:
    assert (len(RECORDED), len(CASES)) == (66, 59)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_decision_and_message_match_the_real_scheduler(case: dict[str, Any]) -> None:
    claims = [
        item | {"metadata": item["metadata"] | {"namespace": case["pod"]["metadata"]["namespace"]}}
        for item in case["other_objects"]
        if item.get("kind") == "PersistentVolumeClaim"
    ]
    others: dict[str, list[dict[str, Any]]] = {}
    for item in case["other_objects"]:
        others.setdefault(item["kind"], []).append(item)
    # The pod was recorded after the decision: put it back to what the scheduler saw.
    pod = case["pod"] | {"status": {"phase": "Pending"}, "spec": case["pod"]["spec"] | {"nodeName": None}}
    decision = schedule(pod, case["nodes"], case["other_pods"], claims, others)
    assert decision.message == (case["message"] or "")
    assert bool(decision.node) == bool(case["nodeName"])
    # Which of several equal nodes is taken is left to chance.
    assert bool(decision.nominated) == bool(case["nominatedNodeName"])
    assert {victim["spec"]["nodeName"] for victim in decision.victims} == {decision.nominated or ""} - {""}


def on(node: str, name: str, priority: int, cpu: str = "2", **fields: Any) -> Object:
    pod = make_pod(name, requests={"cpu": cpu}, nodeName=node, priority=priority)
    pod["metadata"] |= {"uid": name, "labels": {"app": name}, **fields}
    pod["status"] = {"phase": "Running", "startTime": "2026-11-21T04:00:00Z"}
    return pod


def wanted(cpu: str = "2", **spec: Any) -> Object:
    pod = make_pod("vip", requests={"cpu": cpu}, **{"priority": 1000, **spec})
    pod["metadata"]["uid"] = "vip"
    return pod


def budget(name: str, app: str, allowed: int) -> Object:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def decide(pods: list[Object], pod: Object | None = None, *budgets: Object) -> SchedulingDecision:
    nodes = [make_node(name, cpu="4") for name in sorted({each["spec"]["nodeName"] for each in pods})]
    return schedule(pod or wanted(), nodes, pods, others={"PodDisruptionBudget": budgets})


def victims(decision: SchedulingDecision) -> list[str]:
    return [pod["metadata"]["name"] for pod in decision.victims]


@pytest.mark.parametrize(
    ("pods", "cpu", "node", "leaving"),
    [
        ([on("a", "low", 1), on("a", "mid", 5)], "2", "a", ["low"]),
        ([on("a", "p", 1, "1"), on("a", "q", 2, "1"), on("a", "r", 3, "2")], "2", "a", ["q", "p"]),
        ([on("a", "small", 1, "1"), on("a", "large", 2, "3")], "3", "a", ["large"]),
        ([on("a", "x", 9, "4"), on("b", "y", 3, "4")], "4", "b", ["y"]),
        ([on("a", "x", 3, "4"), on("b", "y", 3, "2"), on("b", "z", 2, "2")], "4", "a", ["x"]),
        ([on("a", "equal", 1000, "4")], "2", "", []),
    ],
    ids=["least important", "no more than needed", "large enough", "least important node", "fewest pods", "equal"],
)
def test_least_important_and_fewest_pods_leave(pods: list[Object], cpu: str, node: str, leaving: list[str]) -> None:
    decision = decide(pods, wanted(cpu))
    assert (decision.nominated, victims(decision)) == (node, leaving)


def test_latest_started_victim_breaks_a_tie() -> None:
    late = on("b", "y", 3, "4")
    late["status"]["startTime"] = "2026-11-21T05:00:00Z"
    assert decide([on("a", "x", 3, "4"), late]).nominated == "b"


def test_budget_protects_pods_while_others_can_leave() -> None:
    pods = [on("a", "guarded", 1), on("a", "free", 5)]
    assert victims(decide(pods, None, budget("keep", "guarded", 0))) == ["free"]
    assert victims(decide(pods, None, budget("keep", "guarded", 1))) == ["guarded"]
    elsewhere = [on("a", "guarded", 1, "4"), on("b", "free", 900, "4")]
    assert decide(elsewhere, None, budget("keep", "guarded", 0)).nominated == "b"
    assert victims(decide([on("a", "guarded", 1, "4")], None, budget("keep", "guarded", 0))) == ["guarded"]


def test_pod_waits_on_nominated_node_while_victims_end() -> None:
    pod = wanted()
    pod["status"] = {"phase": "Pending", "nominatedNodeName": "a"}
    ending = on("a", "low", 1, "4", deletionTimestamp="2026-11-21T04:10:00Z")
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ending["status"]["conditions"] = [condition]
    decision = decide([ending], pod)
    assert (decision.nominated, decision.victims) == (None, ())
    assert decision.message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")


def test_reserved_capacity_is_withheld_from_less_important_pod() -> None:
    vip = wanted("4")
    vip["status"] = {"phase": "Pending", "nominatedNodeName": "a"}
    nodes = [make_node("a", cpu="4")]
    other = make_pod("other", requests={"cpu": "1"}, priority=10)
    other["metadata"]["uid"] = "other"
    assert schedule(other, nodes, [vip]).message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert schedule({**other, "spec": {**other["spec"], "priority": 2000}}, nodes, [vip]).node == "a"
    assert schedule(vip, nodes, [vip]).node == "a"


async def test_victim_is_notified_and_ended_and_pod_takes_over(tmp_path: Path) -> None:
    clock = FastClock(speed=10)
    async with api_server(tmp_path, clock) as client:
        await add_node(client, make_node("a", cpu="4"))
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
        await client.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        seen = Mirrors(client, clock=clock)
        pods, events, history = seen.of(PODS), seen.of(EVENTS), []
        pods.subscribe(lambda _, new: history.append(new) if new else None)

        def node_of(name: str) -> str:
            pod = pods.get(f"default/{name}")
            return str(pod["spec"].get("nodeName", "")) if pod else ""

        async with seen.running(), running(Scheduler(client, clock=clock), FakeKubelet(client, clock)):
            await client.create(PODS.path("default"), make_pod("low", requests={"cpu": "3"}))
            await eventually(lambda: node_of("low") == "a", "the first pod is bound")
            vip = make_pod("vip", requests={"cpu": "3"}, priorityClassName="high")
            uid = (await client.create(PODS.path("default"), vip))["metadata"]["uid"]
            await eventually(lambda: node_of("vip") == "a", "the important pod is bound")
            await eventually(lambda: [e for e in events.values() if e["reason"] == "Preempted"], "the victim's event")
        event = next(event for event in events.values() if event["reason"] == "Preempted")
        assert event["message"] == f"Preempted by pod {uid} on node a"
        assert event["involvedObject"]["name"] == "low"
        assert pods.get("default/low") is None
    ended = [condition_of(pod, "DisruptionTarget") for pod in history if pod["metadata"]["name"] == "low"]
    assert {(each["reason"], each["message"]) for each in ended if each} == {
        ("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")
    }
    nominations = [pod["status"].get("nominatedNodeName") for pod in history if pod["metadata"]["name"] == "vip"]
    assert "a" in nominations, "the node is kept for it meanwhile"
    assert nominations[-1] is None, "a pod that has its node needs no nomination"
