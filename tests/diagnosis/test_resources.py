"""What a pod requests, with every resource by its own name."""

from typing import Any

import pytest

from grid.diagnosis.resources import requested_amounts, resource_amounts
from grid.kube.objects import Pod
from tests.support.builders import decode, pod


def container(**requests: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container()]}, {"pods": 1}),
        ({"containers": [container(cpu="1"), container(cpu="500m")]}, {"cpu": 1500, "pods": 1}),
        (
            {"containers": [container(**{"example.com/fpga": "2", "ephemeral-storage": "1Ki"})]},
            {"example.com/fpga": 2, "ephemeral-storage": 1024, "pods": 1},
        ),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="3", memory="5")]}, {"cpu": 3000, "memory": 5, "pods": 1}),
        (
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="1") | {"restartPolicy": "Always"}, container(cpu="3")]},
            {"cpu": 4000, "pods": 1},
        ),
        (
            {"containers": [container(cpu="1", gpu="1")], "resources": {"requests": {"cpu": "8"}}, "overhead": {"cpu": "10m"}},
            {"cpu": 8010, "gpu": 1, "pods": 1},
        ),
    ],
)  # fmt: skip
def test_a_pod_takes_of_its_node(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert requested_amounts(decode(pod("p", spec=spec), Pod)) == expected


def test_a_quantity_that_cannot_be_read_counts_as_nothing() -> None:
    assert resource_amounts({"cpu": "many", "memory": "1Mi"}) == {"cpu": 0, "memory": 2**20}


WANTED, HELD = {"cpu": "2", "memory": "8Gi"}, {"cpu": "6", "memory": "4Gi"}


def resized(*conditions: dict[str, Any], allocated: dict[str, str] = HELD, actual: dict[str, str] = HELD) -> Pod:
    """A pod that asks for WANTED since its resize, and whose container still holds HELD."""
    status = {"name": "c", "allocatedResources": allocated, "resources": {"requests": actual}}
    parts = {"conditions": list(conditions), "containerStatuses": [status]}
    return decode(pod("p", node="n", spec={"containers": [container(**WANTED)]}, status=parts), Pod)


@pytest.mark.parametrize(
    ("condition", "cpu", "memory"),
    [
        ({"type": "PodResizeInProgress", "status": "True"}, 6000, 8 * 2**30),
        ({"type": "PodResizePending", "status": "True", "reason": "Deferred"}, 6000, 8 * 2**30),
        ({"type": "PodResizePending", "status": "True", "reason": "Infeasible"}, 6000, 4 * 2**30),
        ({"type": "Ready", "status": "True"}, 2000, 8 * 2**30),
    ],
)
def test_pod_counts_its_largest_amounts_while_resized(condition: dict[str, str], cpu: int, memory: int) -> None:
    amounts = requested_amounts(resized(condition))
    assert (amounts["cpu"], amounts["memory"]) == (cpu, memory)


def test_allocated_and_actual_amounts_both_count_during_resize() -> None:
    under_way = {"type": "PodResizeInProgress", "status": "True"}
    assert requested_amounts(resized(under_way, allocated={"cpu": "1"}, actual={"cpu": "3"}))["cpu"] == 3000
    assert requested_amounts(resized(under_way, allocated={"cpu": "3"}, actual={"cpu": "1"}))["cpu"] == 3000


def test_sidecar_being_resized_counts_its_largest_amount() -> None:
    sidecar = {**container(cpu="1"), "name": "side", "restartPolicy": "Always"}
    held = {"name": "side", "allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "5"}}}
    status = {"conditions": [{"type": "PodResizeInProgress", "status": "True"}], "initContainerStatuses": [held]}
    spec = {"containers": [container(cpu="1")], "initContainers": [sidecar]}
    assert requested_amounts(decode(pod("p", spec=spec, status=status), Pod))["cpu"] == 6000


def test_held_resources_are_kept_only_during_a_resize() -> None:
    settled = resized({"type": "Ready", "status": "True"}).status.container_statuses[0]
    assert (settled.resources, settled.allocated_resources) == (None, None)
    under_way = resized({"type": "PodResizeInProgress", "status": "True"}).status.container_statuses[0]
    assert under_way.allocated_resources == HELD
