"""Nodes that tell of GPUs and offer none: new ones get a driver first, old ones have a broken one."""

from datetime import timedelta

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Pod
from tests.diagnosis.placement.worlds import surroundings
from tests.support import builders
from tests.support.builders import MOMENT, condition, decode

GPU = "nvidia.com/gpu"
REFUSAL = f"0/2 nodes are available: 1 Insufficient {GPU}, 1 node(s) didn't match Pod's node affinity/selector."


def explained(minutes: float, labels: dict[str, str]) -> Diagnosis:
    """Explain a pod that needs a GPU of a pool whose only node is so old, and has these labels."""
    conditions = [condition("PodScheduled", "False", "Unschedulable", REFUSAL)]
    pod = builders.pod(
        "p", conditions=conditions, requests={"cpu": "1", GPU: "2"}, spec={"nodeSelector": {NODE_POOL: "gpu"}}
    )
    node = builders.node("gpu-1", pool="gpu", labels=labels, created=MOMENT - timedelta(minutes=minutes))
    return explain_pod(
        decode(pod, Pod), (), now=MOMENT, scheduling=surroundings([node, builders.node("cpu-1")], [], [])
    )


@pytest.mark.parametrize(
    "label", ["cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", f"{GPU}.present"]
)
def test_new_node_without_its_gpus_yet_is_a_normal_wait(label: str) -> None:
    diagnosis = explained(3, {label: "x"})
    assert diagnosis.sentence == (
        "Node gpu-1 of the pool gpu, the only one that this may use, does not offer its GPUs yet: "
        "driver and device plugin of a new node take a few minutes."
    )
    assert diagnosis.severity == "wait" and diagnosis.is_normal


def test_old_node_without_its_gpus_is_for_an_operator() -> None:
    diagnosis = explained(40, {"cloud.google.com/gke-accelerator": "nvidia-l4"})
    assert (diagnosis.code, diagnosis.who) == ("broken_devices", "operator")
    assert "does not offer its GPUs" in diagnosis.sentence and "device plugin" in diagnosis.next_step


def test_node_that_tells_of_no_gpu_is_too_small() -> None:
    assert explained(3, {}).code == "too_large"
