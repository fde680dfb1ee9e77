"""What a drain evicts and which budget forbids it, which marks may change, and what other agents say of a node."""

from typing import Any

import pytest

from dashboard.nodes.viewmodels.nodes import node_status
from grid.core.labels import APP_COMPONENT, APP_NAME, HEAD, MANAGER, PLACEHOLDER, SIMULATED, WORKER
from grid.diagnosis.nodeshapes import NodeShape
from grid.kube.objects import Node, Pod, RawObject, Taint, Toleration
from grid.nodes.drain import DisruptionBudget, DrainedPod, EvictedData, drain_plan
from grid.nodes.nodemarks import (
    Mark,
    NodePlace,
    evictions,
    fingerprint,
    patch_with,
    refusal,
    selected_by_label,
    tiers_changed,
    with_mark,
)
from grid.nodes.scaledown import ScaleDownRules, scale_down
from grid.sandbox.apiserver.patches import merge_patch
from grid.tiers.tierdoctor import TierRequest
from tests.support import builders
from tests.support.builders import NAMESPACE, condition, decode, node
from tests.support.golden import assert_golden


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


MARKS = (
    *(Mark("label", "kubernetes.io/hostname", "x"), Mark("unlabel", "node-role.kubernetes.io/worker")),
    *(
        Mark("taint", "node.k8s.io/x", "", "NoSchedule"),
        Mark("untaint", "node.kubernetes.io/unschedulable", "", "NoSchedule"),
    ),
    *(Mark("untaint", key, "", "NoSchedule") for key in ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")),
    *(Mark("taint", "a.karpenter.sh/b", "", "NoExecute"), Mark("unlabel", SIMULATED)),
    *(
        Mark("taint", "a", "", "Sometimes"),
        Mark("delete", "a"),
        Mark("label", "Ex_ample/a"),
        Mark("label", f"{'a' * 254}/a"),
    ),
    *(Mark("taint", "a b", "", "NoSchedule"), Mark("label", "a" * 64), Mark("taint", "a", "<b>", "NoSchedule")),
    *(Mark("label", "disk", "ssd"), Mark("unlabel", "nothing")),
    *(Mark("taint", "team", "a", "NoExecute"), Mark("untaint", "team", "", "NoSchedule")),
)


def test_refusals_of_marks_are_as_stored() -> None:
    marked = marked_node(labels={"disk": "ssd"}, taints=[{"key": "team", "value": "a", "effect": "NoExecute"}])
    lines = [f"# {mark.action} {str(mark)[-70:]}\n{refusal(mark, marked)}" for mark in MARKS]
    assert_golden("words-of-marks", "\n".join(lines), ending="txt")


def test_fates_of_drained_pods_are_as_stored() -> None:
    labels, keep = {"app": "a"}, budget("keep", {"app": "a"}, 0)
    drained = plan(
        running("a-static", annotations={"kubernetes.io/config.mirror": "x"}),
        running("an-agent", owner=owned("DaemonSet")),
        running("anchored", owner=owned("ConfigMap"), labels=labels),
        builders.pod("ended", node="n1", phase="Failed"),
        running("head", owner=owned("ReplicaSet"), labels={APP_COMPONENT: HEAD}),
        running("placeholder", labels={APP_COMPONENT: PLACEHOLDER, APP_NAME: MANAGER}, spec={"priority": -10}),
        running("twice", owner=owned("ReplicaSet"), labels={"app": "c"}),
        running("worker", owner=owned("ReplicaSet"), labels={APP_COMPONENT: WORKER}),
        budgets=(keep, budget("one", {"app": "c"}, 1), budget("two", {"app": "c"}, 1)),
    )
    lines = [
        f"# {name}: {pod.fate}{', comes back' if pod.comes_back else ''}\n{pod.why} {pod.forbids or ''}".rstrip()
        for name, pod in drained.items()
    ]
    assert_golden("words-of-drains", "\n".join(lines), ending="txt")


@pytest.mark.parametrize("action", ["taint", "untaint", "label", "unlabel"])
def test_patch_of_a_mark_changes_what_it_names_alone(action: str) -> None:
    before: RawObject = {**builders.node("n1", labels={"disk": "ssd", "zone": "a"}), "spec": {"taints": TAINTS}}
    mark = Mark(action, "team" if action.endswith("taint") else "disk", "b", "NoExecute")
    after = merge_patch(before, patch_with(before, mark))
    assert decode(after, Node).metadata.labels == with_mark(decode(before, Node), mark).metadata.labels
    assert decode(after, Node).spec.taints == with_mark(decode(before, Node), mark).spec.taints
    assert after != before
    assert patch_with({"metadata": {}}, mark)["metadata"]["resourceVersion"] is None


TAINTS = [{"key": "team", "value": "a", "effect": effect} for effect in ("NoExecute", "NoSchedule")]


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
