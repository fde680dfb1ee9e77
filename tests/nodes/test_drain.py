"""What a drain evicts, what stays, what does not come back, and which budget forbids it."""

from typing import Any

from grid.core.labels import APP_COMPONENT, HEAD
from grid.kube.objects import Pod, RawObject
from grid.nodes.drain import DisruptionBudget, DrainedPod, EvictedData, drain_plan
from tests.support import builders
from tests.support.builders import NAMESPACE, decode


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
