"""Taints have kinds; a key that is not known says nothing of why somebody set it."""

import pytest

from grid.diagnosis.places import is_for_other_work, state_of


@pytest.mark.parametrize(
    ("key", "kind", "words"),
    [
        ("node.cloudprovider.kubernetes.io/uninitialized", "not_ready", "still starting"),
        ("node.cilium.io/agent-not-ready", "not_ready", "still starting"),
        ("startup-taint.cluster-autoscaler.kubernetes.io/gpu-driver", "not_ready", "still starting"),
        ("karpenter.sh/disrupted", "leaving", "being removed by Karpenter"),
        ("ToBeDeletedByClusterAutoscaler", "leaving", "being removed by the autoscaler"),
        ("aws-node-termination-handler/spot-itn", "leaving", "being reclaimed by the cloud"),
        ("node.kubernetes.io/out-of-service", "not_ready", "out of service"),
    ],
)
def test_taint_of_a_state_says_which(key: str, kind: str, words: str) -> None:
    assert state_of(key) == (kind, words)
    assert not is_for_other_work(key)


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "dedicated", "lab.example/dedicated-for", "CriticalAddonsOnly"])
def test_taint_of_dedicated_nodes_keeps_them_for_other_work(key: str) -> None:
    assert state_of(key) is None
    assert is_for_other_work(key)


@pytest.mark.parametrize("key", ["maintenance", "lab.example/look-at-me", "karpenter.sh/other"])
def test_unknown_taint_is_given_no_meaning(key: str) -> None:
    assert state_of(key) is None
    assert not is_for_other_work(key)
