"""What a pod asks of its node, as the scheduler and the autoscaler count it."""

from typing import Any

import pytest

from grid.diagnosis.requests import Amounts, amounts, holds_a_node, pod_requests, total
from grid.kube.objects import Pod
from tests.support import builders


def container(name: str, cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


def pod(**arguments: Any) -> Pod:
    return builders.decode(builders.pod("p", **arguments), Pod)


def test_each_resource_is_added_for_itself() -> None:
    first, other = Amounts(1, 20, 300), Amounts(4, 50, 600)
    assert first + other == total([first, other]) == Amounts(5, 70, 900)
    assert first.times(-2) == Amounts(-2, -40, -600)


def test_gpus_of_all_makes_are_counted_and_nonsense_ignored() -> None:
    assert amounts({"nvidia.com/gpu": "2", "amd.com/gpu": "1", "cpu": "many"}) == Amounts(cpu=0, memory=0, gpus=3)
    assert amounts({"cpu": "1500m", "memory": "1Ki", "nvidia.com/mig": "7"}) == Amounts(cpu=1500, memory=1024)


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("running", "init", "overhead", "expected"),
    [
        ("500m", [container("side", "100m", **SIDECAR), container("setup", "2")], "50m", 2150),
        ("3", [container("side", "100m", **SIDECAR), container("setup", "2")], "50m", 3150),
        ("500m", [container("setup", "2"), container("check", "1")], "", 2000),
        ("500m", [], "50m", 550),
        ("500m", [container("a", "100m", **SIDECAR), container("b", "200m", **SIDECAR), container("setup", "1")], "", 1300),
        ("500m", [container("setup", "1"), container("a", "100m", **SIDECAR), container("b", "200m", **SIDECAR)], "", 1000),
        ("100m", [container("a", "1", **SIDECAR), container("b", "2", **SIDECAR)], "", 3100),
    ],
)  # fmt: skip
def test_pod_asks_for_its_largest_step_and_its_sidecars(
    running: str, init: list[dict[str, Any]], overhead: str, expected: int
) -> None:
    spec = {"initContainers": init, "overhead": {"cpu": overhead} if overhead else {}}
    assert pod_requests(pod(containers=[container("run", running)], spec=spec)).cpu == expected


@pytest.mark.parametrize(
    ("node", "phase", "expected"),
    [("n", "Running", True), ("n", "Pending", True), ("n", "Succeeded", False), ("n", "Failed", False), ("", "Pending", False)],
)  # fmt: skip
def test_a_pod_holds_its_node_until_it_has_ended(node: str, phase: str, expected: bool) -> None:
    assert holds_a_node(pod(node=node, phase=phase)) is expected
