"""A node refuses a pod that does not fit, in the words of a real kubelet."""

import pytest

from grid.sandbox.kubelet.admittance import refusal
from tests.sandbox.kubelet.support import World, pod

NODE = {"cpu": "7920m", "memory": "32Gi", "pods": "3", "ephemeral-storage": "10Gi", "example.com/gpu": "1"}
NO_DEVICES = "Allocate failed due to requested number of devices unavailable for example.com/gpu."


@pytest.mark.parametrize(
    ("wanted", "reason", "message"),
    [
        (
            {"memory": 32 * 2**30},
            "OutOfmemory",
            f"Node didn't have enough resource: memory, requested: {2**35}, used: {2**30}, capacity: {2**35}",
        ),
        (
            {"example.com/gpu": 2},
            "UnexpectedAdmissionError",
            f"{NO_DEVICES} Requested: 2, Available: 1, which is unexpected",
        ),
    ],
)
def test_missing_resource_is_named(wanted: dict[str, int], reason: str, message: str) -> None:
    verdict = refusal(wanted, NODE, [{"cpu": 1000, "memory": 2**30}])
    assert verdict is not None
    assert (verdict.phase, verdict.reason, verdict.message) == ("Failed", reason, message)


def test_exactly_fitting_pod_is_admitted_and_another_is_not() -> None:
    assert refusal({"cpu": 6920, "other.example/gpu": 4}, NODE, [{"cpu": 1000}, {}]) is None
    verdict = refusal({}, NODE, [{}, {}, {}])
    assert verdict is not None
    assert verdict.message == "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"


async def test_pod_bound_to_full_node_fails_without_running(world: World) -> None:
    resources = {"resources": {"requests": {"cpu": "6"}}}
    await world.run(pod("first", "sleep 60", container=resources))
    await world.phase("first", "Running")
    await world.run(pod("second", "sleep 60", container=resources))
    status = await world.phase("second", "Failed")
    message = "Node didn't have enough resource: cpu, requested: 6000, used: 6000, capacity: 8000"
    assert (status["reason"], status["message"]) == ("OutOfcpu", f"Pod was rejected: {message}")
    assert "containerStatuses" not in status
    await world.event("second", "OutOfcpu")
    assert world.api.messages("second", "OutOfcpu") == [message]
    assert world.api.events("second", "Pulling") == []
