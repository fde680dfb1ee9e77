"""Devices that are there and do not work are an operator's matter; what no node has is not a matter of size."""

from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Pod
from tests.diagnosis.placement.worlds import surroundings
from tests.support.builders import MOMENT, condition, decode, node, pod

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
REFUSED = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")


def explain(nodes: list[dict[str, Any]], pods: list[dict[str, Any]] | None = None, *, gpus: str = "2") -> Diagnosis:
    waiting = pod("w", requests={"cpu": "1", GPU: gpus}, conditions=[REFUSED])
    now = MOMENT + timedelta(minutes=5)
    return explain_pod(decode(waiting, Pod), [], now=now, scheduling=surroundings(nodes, pods or []))


def broken(name: str, capacity: str, offered: str) -> dict[str, Any]:
    item = node(name)
    item["status"]["allocatable"] = {**item["status"]["allocatable"], GPU: offered}
    item["status"]["capacity"] = {**item["status"]["allocatable"], GPU: capacity}
    return item


@pytest.mark.parametrize(("offered", "numbers"), [("0", "none of them works"), ("1", "1 of them works")])
def test_capacity_above_allocatable_is_broken_not_small(offered: str, numbers: str) -> None:
    diagnosis = explain([broken("g1", "4", offered), node("cpu")])
    assert (diagnosis.code, diagnosis.severity, diagnosis.who) == ("broken_devices", "problem", "operator")
    assert diagnosis.sentence == (
        f"Node g1 has 4 GPUs, but {numbers} (nvidia.com/gpu); this needs 2 GPUs; of the others, 1 is too small."
    )
    assert diagnosis.next_step == "Ask an operator to look at the device plugin and the driver on g1."
    rows = {row.names[0]: (row.what, row.lasting) for row in diagnosis.table}
    assert rows["g1"] == (f"devices that do not work: {offered} of 4 GPUs offered, but 2 needed", "for_now")


def test_labels_tell_of_devices_whose_plugin_is_gone() -> None:
    gone = broken("g1", "0", "0")
    gone["metadata"]["labels"]["nvidia.com/gpu.count"] = "4"
    assert explain([gone]).code == "broken_devices"
    gone["status"]["allocatable"][MIG] = "7"
    assert explain([gone]).code == "too_large", "the GPUs are offered as slices"


def test_too_many_devices_are_too_many_though_some_are_broken() -> None:
    diagnosis = explain([broken("g1", "4", "0")], gpus="8")
    assert diagnosis.code == "too_large"
    assert "the largest has 4 GPUs" in diagnosis.sentence


def test_full_node_with_working_devices_is_waited_for() -> None:
    works = node("g2", extended={GPU: "2"})
    taker = pod("t", node="g2", phase="Running", requests={GPU: "2"})
    assert explain([broken("g1", "4", "0"), works], [taker]).code == "busy"


def test_device_that_no_node_has_is_called_absent() -> None:
    diagnosis = explain([node("n1"), node("n2")])
    assert diagnosis.sentence == "No node has a GPU, which this needs."
    assert diagnosis.next_step == "Choose a tier that does not need it, or ask your admin for nodes that have it."
    assert explain([node("n1", extended={MIG: "1"})]).sentence == "No node has nvidia.com/gpu, which this needs."
    assert explain([node("n1", extended={GPU: "1"})]).sentence.endswith("it needs 2 GPUs, the largest has 1 GPU.")
