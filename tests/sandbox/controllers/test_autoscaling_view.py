"""What the node autoscaler counts on: a node that says Ready and still has the taint of one that is not is on its way, not there."""

from datetime import timedelta

import pytest

from grid.sandbox.client import Object
from grid.sandbox.controllers.autoscaling.scaleup import plan_scale_up
from grid.sandbox.controllers.autoscaling.view import Patience, View
from grid.sandbox.controllers.nodehealth import NOT_READY
from grid.sandbox.pools import DEFAULT_POOLS
from tests.sandbox.controllers.test_scaleup import gpu_pod, waiting
from tests.sandbox.support import START, make_node

NAME = "default-gpu-1"
POOL = next(pool for pool in DEFAULT_POOLS if pool.name == "default-gpu")
NOT_YET = {"key": NOT_READY, "effect": "NoSchedule"}


def view(node: Object) -> View:
    """A round that comes when nobody has said anything about the machine's first minute."""
    machines = {pool.name: [NAME] if pool == POOL else [] for pool in DEFAULT_POOLS}
    patience = Patience(provision=timedelta(minutes=15), recovery=timedelta(minutes=2))
    missing = {} if View(START, DEFAULT_POOLS, machines, {NAME: node}, {}, patience).ready(POOL.name) else {NAME: START}
    return View(START, DEFAULT_POOLS, machines, {NAME: node}, missing, patience)


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
def test_a_pod_never_brings_a_second_node_while_its_own_comes(node: Object, is_ready: bool) -> None:
    seen = view(node)
    assert (seen.ready(POOL.name), seen.booting(POOL.name)) == (([NAME], []) if is_ready else ([], [NAME]))
    plan = plan_scale_up(waiting(gpu_pod("train")), seen.snapshot([], []), seen.pool_states({}, ()))
    assert plan.increases == ()
