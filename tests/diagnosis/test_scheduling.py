"""Every message that was recorded from a real scheduler leads to a sensible diagnosis."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from grid.diagnosis.pods import explain_pod
from grid.diagnosis.scheduling import counted_reasons
from grid.kube.objects import Pod
from tests.support.builders import MOMENT, condition, decode, pod

MESSAGES = json.loads((Path(__file__).parent / "recorded_messages.json").read_text())
EXPECTED = {
    "insufficient-cpu": "too_large",
    "insufficient-cpu-because-used": "busy",
    "insufficient-memory": "too_large",
    "gpu-none": "too_large",
    "gpu-all-used": "busy",
    "gpu-node-tainted": "too_large",
    "taint-one": "tainted",
    "not-ready-nodes": "tainted",
    "control-plane-taint-and-cpu": "too_large",
    "node-selector-mismatch": "no_such_node",
    "node-affinity-gt-and-taint": "tainted",
    "anti-affinity-self": "unschedulable",
    "too-many-pods": "busy",
    "all-unschedulable": "cordoned",
    "not-ready-and-unschedulable-and-cpu": "too_large",
    "pvc-not-found": "volume",
    "pvc-unbound-immediate": "volume",
    "pvc-wffc-no-volume": "volume",
    "pv-node-affinity-conflict-and-cpu": "volume",
    "generic-ephemeral-unbound": "volume",
    "no-nodes": "no_such_node",
    "preemption-policy-never": "busy",
    "host-port-conflict": "unschedulable",
    "ephemeral-storage": "too_large",
    "extended-resource-custom": "too_large",
    "big-mix": "busy",
    "big-mix-gpu": "busy",
}


def unscheduled(message: str) -> Any:
    said = condition("PodScheduled", "False", "Unschedulable", message)
    return pod("p", conditions=[said], created=MOMENT - timedelta(minutes=5))


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_a_recorded_message_is_understood(case: str) -> None:
    found = explain_pod(decode(unscheduled(MESSAGES[case]), Pod), (), now=MOMENT)
    assert found.code == EXPECTED[case]
    assert found.evidence == (MESSAGES[case],)


@pytest.mark.parametrize("case", sorted(MESSAGES))
def test_reasons_are_counted_without_the_part_on_preemption(case: str) -> None:
    counted = counted_reasons(MESSAGES[case])
    assert counted
    assert not any("reemption" in reason or "available" in reason.partition("no nodes")[0] for reason in counted
                   if "persistent volumes" not in reason)  # fmt: skip


def test_reasons_of_the_autoscaler_are_counted_in_any_order() -> None:
    for message in (
        "1 max node group size reached, 2 Insufficient cpu",
        "2 Insufficient cpu, 1 max node group size reached",
    ):
        assert counted_reasons(f"pod didn't trigger scale-up: {message}") == {
            "max node group size reached": 1,
            "Insufficient cpu": 2,
        }


@pytest.mark.parametrize("message", ["", "nonsense", "0/3 nodes are available", "1 " * 4000, "\x00\u202e"])
def test_a_message_that_nobody_foresaw_is_no_error(message: str) -> None:
    found = explain_pod(decode(unscheduled(message), Pod), (), now=MOMENT)
    assert found.severity in ("wait", "problem")
