"""What the node autoscaler counts on: a node that says Ready and still has the taint of one that is not is on its way, not there."""

from dataclasses import replace
from datetime import timedelta

import pytest

from grid.sandbox.client import Object, format_time
from grid.sandbox.controllers.autoscaling.scaleup import plan_scale_up
from grid.sandbox.controllers.autoscaling.view import AutoscalingView, MachineTimeouts, drop_upcoming
from grid.sandbox.controllers.nodehealth import NOT_READY
from grid.sandbox.pools import DEFAULT_POOLS
from tests.sandbox.controllers.test_scaleup import gpu_pod, waiting
from tests.sandbox.support import START, make_node

NAME = "default-gpu-1"
POOL = next(pool for pool in DEFAULT_POOLS if pool.name == "default-gpu")
NOT_YET = {"key": NOT_READY, "effect": "NoSchedule"}


def view(node: Object) -> AutoscalingView:
    """A round that comes when nobody has said anything about the machine's first minute."""
    machines = {pool.name: [NAME] if pool == POOL else [] for pool in DEFAULT_POOLS}
    patience = MachineTimeouts(provision=timedelta(minutes=15), recovery=timedelta(minutes=2))
    missing = (
        {}
        if AutoscalingView(START, DEFAULT_POOLS, machines, {NAME: node}, {}, patience).ready(POOL.name)
        else {NAME: START}
    )
    return AutoscalingView(START, DEFAULT_POOLS, machines, {NAME: node}, missing, patience)


def gpu_node(*taints: Object, ready: bool = True, **conditions: str) -> Object:
    node = make_node(NAME, labels=POOL.node_labels(NAME), taints=[*POOL.node_taints(), *taints], ready=ready)
    node["status"]["allocatable"] = node["status"]["capacity"] = dict(POOL.capacity)
    node["status"]["conditions"] += [{"type": kind, "status": status} for kind, status in conditions.items()]
    return node


@pytest.mark.parametrize(
    ("node", "is_ready"),
    [
        (gpu_node(), True),
        (gpu_node(ready=False), False),
        (gpu_node(NOT_YET, ready=False), False),
        (gpu_node(NOT_YET), False),
        (gpu_node(DiskPressure="True"), False),
        (gpu_node(DiskPressure="False", MemoryPressure="True"), True),
        (gpu_node({"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}), False),
    ],
)
def test_pod_brings_no_second_node_while_one_comes(node: Object, is_ready: bool) -> None:
    seen = view(node)
    assert (seen.ready(POOL.name), seen.booting(POOL.name)) == (([NAME], []) if is_ready else ([], [NAME]))
    plan = plan_scale_up(waiting(gpu_pod("train")), seen.snapshot([], []), seen.pool_states({}, ()))
    assert plan.increases == ()


@pytest.mark.parametrize(
    ("age", "away", "comes"),
    [(14, 14, True), (14, 1, True), (15, 3, False), (15, 1.9, True), (15, 2, False), (1000, 1, True)],
    ids=lambda value: str(value),
)
def test_startup_timeout_differs_for_new_and_formerly_ready_machines(age: float, away: float, comes: bool) -> None:
    node = gpu_node(ready=False)
    node["metadata"]["creationTimestamp"] = format_time(START - timedelta(minutes=age))
    seen = replace(view(node), not_ready_since={NAME: START - timedelta(minutes=away)})
    assert seen.booting(POOL.name) == ([NAME] if comes else [])


def test_machine_without_node_is_awaited_like_a_new_one() -> None:
    patient = replace(view(gpu_node(ready=False)), nodes={}, not_ready_since={NAME: START - timedelta(minutes=14)})
    assert patient.booting(POOL.name) == [NAME]
    assert replace(patient, not_ready_since={NAME: START - timedelta(minutes=15)}).booting(POOL.name) == []


def test_booting_machines_are_empty_ready_nodes_until_dropped() -> None:
    ready = gpu_node()
    ready["status"]["allocatable"] = {"cpu": "7"}
    seen = replace(view(ready), not_ready_since={"default-gpu-2": START})
    seen = replace(seen, machines={**seen.machines, POOL.name: [NAME, "default-gpu-2"]})
    snapshot = seen.snapshot([], [])
    assert {name: state.allocatable for name, state in snapshot.nodes.items()} == {
        NAME: {"cpu": 7000},
        "upcoming/default-gpu-2": {"cpu": 7000},
    }
    drop_upcoming(snapshot)
    assert set(snapshot.nodes) == {NAME}


def test_pool_counts_its_machines_including_recent_requests() -> None:
    states = {state.pool.name: state for state in view(gpu_node()).pool_states({POOL.name: 2}, {"default"})}
    assert {name: (state.size, state.in_backoff) for name, state in states.items()} == {
        "platform": (0, False),
        "default": (0, True),
        POOL.name: (3, False),
    }
    like = gpu_node()
    like["status"]["allocatable"] = {"cpu": "7"}
    (state,) = (state for state in view(like).pool_states({}, ()) if state.pool == POOL)
    assert state.template.allocatable == {"cpu": 7000}


def test_pods_occupy_their_nodes_in_the_snapshot() -> None:
    pod = gpu_pod("train") | {"spec": {**gpu_pod("train")["spec"], "nodeName": NAME}}
    assert view(gpu_node()).snapshot([pod], []).nodes[NAME].pods == [pod]
