"""What a drain evicts and which budget forbids it, which marks may change, and what other agents say of a node."""

from typing import Any

import pytest

from dashboard.nodes.viewmodels.nodes import node_status
from grid.core.labels import APP_COMPONENT, HEAD
from grid.diagnosis.nodeshapes import NodeShape
from grid.kube.objects import Node, Pod, RawObject, Taint, Toleration
from grid.nodes.drain import DisruptionBudget, DrainedPod, EvictedData, drain_plan
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
from grid.nodes.scaledown import ScaleDownRules, scale_down
from grid.tiers.tierdoctor import TierRequest
from tests.support import builders
from tests.support.builders import NAMESPACE, condition, decode, node


def owned(kind: str) -> RawObject:
    return {"kind": kind, "metadata": {"name": "o", "uid": "u"}}


def budget(name: str, labels: dict[str, str], allowed: int, namespace: str = NAMESPACE) -> DisruptionBudget:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}
    spec = {"selector": {"matchLabels": labels}}
    return decode(
        {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status}, DisruptionBudget
    )


def plan(*pods: RawObject, budgets: tuple[DisruptionBudget, ...] = ()) -> dict[str, DrainedPod]:
    planned = drain_plan([decode(raw, Pod) for raw in pods], [decode(raw, EvictedData) for raw in pods], budgets)
    return {drained.pod.metadata.name: drained for drained in planned}


def running(name: str, **fields: Any) -> RawObject:
    return builders.pod(name, node="n1", phase="Running", ready=True, **fields)


def test_drain_leaves_node_pods_and_ended_pods() -> None:
    mirror = running("static", annotations={"kubernetes.io/config.mirror": "x"})
    drained = plan(
        running("agent", owner=owned("DaemonSet")),
        mirror,
        builders.pod("over", node="n1", phase="Failed"),
        running("w"),
    )
    assert {name: pod.fate for name, pod in drained.items()} == {
        "w": "evicted",
        "agent": "stays",
        "static": "stays",
        "over": "ended",
    }
    assert next(iter(drained)) == "w"


def test_pod_with_a_recreating_controller_comes_back() -> None:
    bare, anchored = running("bare"), running("anchored", owner=owned("ConfigMap"))
    drained = plan(
        bare, anchored, running("web", owner=owned("ReplicaSet")),
        running("head", owner=owned("ReplicaSet"), labels={APP_COMPONENT: HEAD}),
    )  # fmt: skip
    assert [name for name, pod in drained.items() if pod.comes_back] == ["head", "web"]
    assert "ReplicaSet" in drained["web"].why and "new head" in drained["head"].why


def test_own_disk_volumes_are_lost_and_memory_not_named() -> None:
    volumes = [{"name": "scratch", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}, {"name": "x"}]
    assert plan(running("w", spec={"volumes": volumes}))["w"].lost == ("scratch",)


def test_the_budget_that_forbids_it_now_is_named() -> None:
    pods = (running("a", labels={"app": "a"}), running("b", labels={"app": "b"}), running("c", labels={"app": "c"}))
    elsewhere = budget("elsewhere", {"app": "b"}, 0, namespace="other")
    twice = (budget("one", {"app": "c"}, 1), budget("two", {"app": "c"}, 1))
    drained = plan(
        *pods, budgets=(budget("keep", {"app": "a"}, 0), budget("roomy", {"app": "b"}, 1), elsewhere, *twice)
    )
    assert "keep allows no eviction now: it needs 1 healthy pod and has 1" in (drained["a"].forbids or "")
    assert drained["b"].forbids is None
    assert "more than one PodDisruptionBudget (one, two)" in (drained["c"].forbids or "")
    pending = builders.pod("p", node="n1", labels={"app": "a"})
    assert plan(pending, budgets=(budget("keep", {"app": "a"}, 0),))["p"].forbids is None


TEAM = Taint(key="team", value="a", effect="NoExecute")


def marked_node(**more: Any) -> Node:
    return decode(builders.node("n1", **more), Node)


def placed_pod(name: str, **spec: Any) -> Pod:
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
    assert words in (refusal(mark, marked_node()) or "")


def test_key_resembling_kubernetes_keys_is_allowed() -> None:
    assert refusal(Mark("taint", "notkubernetes.io/a", "", "NoSchedule"), marked_node()) is None
    assert refusal(Mark("taint", "nvidia.com/gpu", "present", "NoSchedule"), marked_node()) is None


def test_taint_replaces_same_key_and_effect_only() -> None:
    first = with_mark(marked_node(), Mark("taint", "a", "1", "NoSchedule"))
    second = with_mark(with_mark(first, Mark("taint", "a", "2", "NoSchedule")), Mark("taint", "a", "2", "NoExecute"))
    assert [(taint.value, taint.effect) for taint in second.spec.taints] == [("2", "NoSchedule"), ("2", "NoExecute")]
    assert fingerprint(first) not in (fingerprint(marked_node()), fingerprint(second))
    assert "already" in (refusal(Mark("taint", "a", "1", "NoSchedule"), first) or "")


def test_no_execute_taint_evicts_by_toleration_and_time() -> None:
    tolerating = [{"key": "team", "operator": "Exists"}]
    for_a_time = [{"key": "team", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
    pods = [placed_pod("out"), placed_pod("stays", tolerations=tolerating), placed_pod("later", tolerations=for_a_time)]
    assert [(eviction.pod.metadata.name, eviction.after) for eviction in evictions(pods, TEAM)] == [
        ("out", 0),
        ("later", 60),
    ]
    assert evictions(pods, Taint(key="team", effect="NoSchedule")) == []


def test_pods_selecting_the_old_label_are_listed() -> None:
    pods = [placed_pod("asks", nodeSelector={"disk": "ssd"}), placed_pod("other", nodeSelector={"arch": "arm"})]
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
