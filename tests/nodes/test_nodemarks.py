"""Which taints and labels operators may change, and what a change means for pods and tiers."""

from typing import Any

import pytest

from grid.diagnosis.nodeshapes import NodeShape
from grid.kube.objects import Node, Pod, Taint, Toleration
from grid.nodes.nodemarks import (
    Mark,
    NodePlace,
    evictions,
    fingerprint,
    refusal,
    selected_by_label,
    tiers_changed,
    with_mark,
)
from grid.tiers.tierdoctor import TierRequest
from tests.support import builders
from tests.support.builders import decode

TEAM = Taint(key="team", value="a", effect="NoExecute")


def node(**more: Any) -> Node:
    return decode(builders.node("n1", **more), Node)


def pod(name: str, **spec: Any) -> Pod:
    raw = builders.pod(name, node="n1", phase="Running")
    return decode({**raw, "spec": {**raw["spec"], **spec}}, Pod)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (Mark("label", "kubernetes.io/hostname", "x"), "kept by Kubernetes itself"),
        (Mark("unlabel", "node-role.kubernetes.io/worker"), "kept by Kubernetes itself"),
        (Mark("taint", "node.k8s.io/x", "", "NoSchedule"), "kept by Kubernetes itself"),
        (Mark("untaint", "node.kubernetes.io/unschedulable", "", "NoSchedule"), "uncordon the node instead"),
        (Mark("untaint", "ToBeDeletedByClusterAutoscaler", "", "NoSchedule"), "autoscaler"),
        (Mark("taint", "a", "", "Sometimes"), "Choose"),
        (Mark("taint", "a b", "", "NoSchedule"), "letters, digits"),
        (Mark("taint", "a", "<b>", "NoSchedule"), "A value has"),
        (Mark("label", "Ex_ample/a"), "domain name"),
        (Mark("label", "a" * 64), "1 to 63"),
        (Mark("unlabel", "nothing"), "has no such label"),
        (Mark("delete", "a"), "Choose"),
    ],
)
def test_forbidden_mark_is_refused_with_a_reason(mark: Mark, words: str) -> None:
    assert words in (refusal(mark, node()) or "")


def test_key_resembling_kubernetes_keys_is_allowed() -> None:
    assert refusal(Mark("taint", "notkubernetes.io/a", "", "NoSchedule"), node()) is None
    assert refusal(Mark("taint", "nvidia.com/gpu", "present", "NoSchedule"), node()) is None


def test_taint_replaces_same_key_and_effect_only() -> None:
    first = with_mark(node(), Mark("taint", "a", "1", "NoSchedule"))
    second = with_mark(with_mark(first, Mark("taint", "a", "2", "NoSchedule")), Mark("taint", "a", "2", "NoExecute"))
    assert [(taint.value, taint.effect) for taint in second.spec.taints] == [("2", "NoSchedule"), ("2", "NoExecute")]
    assert fingerprint(first) not in (fingerprint(node()), fingerprint(second))
    assert "already" in (refusal(Mark("taint", "a", "1", "NoSchedule"), first) or "")


def test_no_execute_taint_evicts_by_toleration_and_time() -> None:
    tolerating = [{"key": "team", "operator": "Exists"}]
    for_a_time = [{"key": "team", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
    pods = [pod("out"), pod("stays", tolerations=tolerating), pod("later", tolerations=for_a_time)]
    assert [(eviction.pod.metadata.name, eviction.after) for eviction in evictions(pods, TEAM)] == [
        ("out", 0),
        ("later", 60),
    ]
    assert evictions(pods, Taint(key="team", effect="NoSchedule")) == []


def test_pods_selecting_the_old_label_are_listed() -> None:
    pods = [pod("asks", nodeSelector={"disk": "ssd"}), pod("other", nodeSelector={"arch": "arm"})]
    assert [each.metadata.name for each in selected_by_label(pods, Mark("unlabel", "disk"))] == ["asks"]
    assert selected_by_label(pods, Mark("label", "disk", "ssd")) == []


def test_tiers_fitting_only_this_node_are_lost_with_it() -> None:
    shape, small = (NodeShape({"cpu": cpu, "memory": 2**33}, {}, (), 1, 0) for cpu in (8000, 1000))
    tainted = NodeShape(shape.allocatable, {}, (Taint(key="team", value="a", effect="NoSchedule"),), 1, 0)
    large = {"cpu": 4000, "memory": 2**30}
    tiers = {
        "Large": TierRequest("default", large),
        "Team": TierRequest("default", large, (Toleration(key="team", operator="Exists"),)),
        "Small": TierRequest("default", {"cpu": 500, "memory": 2**30}),
        "Elsewhere": TierRequest("gpu", large),
    }
    others = {"default": [small], "gpu": []}
    before = NodePlace("default", shape)
    assert tiers_changed(tiers, others, before, NodePlace("default", tainted)) == (["Large"], [])
    assert tiers_changed(tiers, others, before, NodePlace("gpu", shape)) == (["Large", "Team"], ["Elsewhere"])
    assert tiers_changed(tiers, {"default": [shape], "gpu": [shape]}, before, NodePlace("", shape)) == ([], [])
