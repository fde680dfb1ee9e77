"""What other agents say of a node: node-problem-detector, EKS's monitoring agent, k3s, and Karpenter."""

import pytest

from dashboard.nodes.viewmodels.nodes import node_status
from grid.kube.objects import Node
from grid.nodes.scaledown import ScaleDownRules, scale_down
from tests.support.builders import condition, decode, node

RULES = ScaleDownRules(threshold_percent=50, unneeded_seconds=600)


def of(name: str, status: str, message: str = "") -> Node:
    return decode(node("n", conditions=[condition("Ready", "True"), condition(name, status, "Why", message)]), Node)


@pytest.mark.parametrize(
    ("name", "status", "message", "words"),
    [
        ("ReadonlyFilesystem", "True", "remounted read-only", "a file system is read-only"),
        ("KernelDeadlock", "True", "", "the kernel hangs"),
        ("VMEventScheduled", "True", "Reboot scheduled.", "VMEventScheduled: Reboot scheduled"),
        ("AcceleratedHardwareReady", "False", "", "AcceleratedHardwareReady: Why"),
    ],
)
def test_condition_of_another_agent_puts_a_node_in_trouble(name: str, status: str, message: str, words: str) -> None:
    line = node_status(of(name, status, message))
    assert (line.severity, line.note) == ("problem", words)


@pytest.mark.parametrize(
    ("name", "status"), [("ReadonlyFilesystem", "False"), ("AcceleratedHardwareReady", "True"), ("EtcdIsVoter", "True")]
)
def test_condition_that_says_all_is_well_is_no_trouble(name: str, status: str) -> None:
    assert node_status(of(name, status)).severity == "ok"


@pytest.mark.parametrize("key", ["karpenter.sh/disrupted", "karpenter.sh/disruption"])
def test_node_that_karpenter_removes_says_so(key: str) -> None:
    going = decode(
        node("n", taints=[{"key": key, "effect": "NoSchedule"}], labels={"karpenter.sh/nodepool": "gpu"}), Node
    )
    assert scale_down(going, [], group=None, group_size=1, rules=RULES).verdict == "removing"


def test_node_of_karpenter_is_of_no_fixed_size() -> None:
    stays = decode(node("n", labels={"karpenter.sh/nodepool": "gpu"}), Node)
    assert "Karpenter decides" in scale_down(stays, [], group=None, group_size=1, rules=RULES).sentence
