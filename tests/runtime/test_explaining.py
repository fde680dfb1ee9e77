"""Pods that wait for a node are explained from what is around them, once for all that are alike, and again when that changes."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.placement import SchedulingContext
from grid.kube.hub import NAME
from grid.kube.objects import Event, Pod
from grid.kube.resources import CONFIG_MAPS, EVENTS, NODES, PODS
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, explaining, new_runtime
from grid.runtime.roomchanges import room_topic
from tests.support import builders
from tests.support.builders import MOMENT, decode, stamp
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill, runtime_of

LATER = MOMENT + timedelta(minutes=10)


class Explained:
    """Stands in for `explain_pod` and keeps what it was called with."""

    def __init__(self) -> None:
        self.scheduling: list[SchedulingContext | None] = []

    def __call__(
        self, pod: Pod, events: Sequence[Event], *, now: Any, scheduling: SchedulingContext | None = None, **_more: Any
    ) -> Diagnosis:
        self.scheduling.append(scheduling)
        return Diagnosis("busy", f"Answer {len(self.scheduling)}.", "wait", "")


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> Explained:
    explained = Explained()
    monkeypatch.setattr(explaining, "explain_pod", explained)
    return explained


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    for name, pool in (("f1", "fast"), ("s1", "slow")):
        cluster.put(NODES, builders.node(name, pool=pool))
    cluster.put(PODS, builders.pod("runs", node="f1", phase="Running", requests={"cpu": "3"}))
    return cluster


def waiting(name: str = "waits", *, pool: str = "fast", cpu: str = "2", **spec: Any) -> Pod:
    conditions = [builders.condition("PodScheduled", "False", "Unschedulable", "0/2 nodes are available.")]
    selector = {"nodeSelector": {NODE_POOL: pool}, **spec}
    return decode(builders.pod(name, spec=selector, requests={"cpu": cpu}, conditions=conditions), Pod)


def ask(runtime: Runtime, pod: Pod, *, names_others: bool = False, seconds: int = 0) -> str:
    now = LATER + timedelta(seconds=seconds)
    return runtime.explainer.explain(pod, names_others=names_others, now=now).sentence


def test_similar_pods_share_an_explanation(explained: Explained, cluster: FakeCluster) -> None:
    runtime = runtime_of(cluster)
    assert {ask(runtime, waiting(f"w{number}")) for number in range(100)} == {"Answer 1."}
    assert ask(runtime, waiting(cpu="3")) == "Answer 2."
    assert ask(runtime, waiting(pool="slow")) == "Answer 3."
    assert ask(runtime, waiting(tolerations=[{"operator": "Exists"}])) == "Answer 4."
    sidecar = {"name": "proxy", "image": "p", "restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 1}]}
    assert ask(runtime, waiting(initContainers=[sidecar])) == "Answer 5.", "its port may be taken"
    assert ask(runtime, waiting(), names_others=True) == "Answer 6.", (
        "who may not know others' names gets another answer"
    )


def test_reader_without_rights_sees_no_names_of_others(cluster: FakeCluster) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {}}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    cluster.put(PODS, builders.pod("payroll-of-alice", namespace="hr", node="f1", phase="Running", spec=apart))
    diagnosis = runtime_of(cluster).explainer.explain(waiting(cpu="100m"), names_others=False, now=LATER)
    assert "must be apart from this" in diagnosis.sentence
    assert "payroll-of-alice" not in str(diagnosis)


def test_explanation_ends_with_change_of_its_pool_only(explained: Explained, cluster: FakeCluster) -> None:
    runtime = runtime_of(cluster)
    assert ask(runtime, waiting()) == "Answer 1."
    cluster.put(PODS, builders.pod("elsewhere", node="s1", phase="Running"))
    fill(runtime, cluster)
    assert ask(runtime, waiting()) == "Answer 1."
    cluster.put(PODS, builders.pod("here", node="f1", phase="Running"))
    fill(runtime, cluster)
    assert ask(runtime, waiting()) == "Answer 2."
    cluster.put(NODES, builders.node("f1", pool="fast", unschedulable=True))
    fill(runtime, cluster)
    assert ask(runtime, waiting()) == "Answer 3."
    status = {"status": "nodeGroups: []"}
    cluster.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", status, namespace="kube-system"))
    fill(runtime, cluster)
    assert ask(runtime, waiting()) == "Answer 4."
    assert ask(runtime, waiting(), seconds=6) == "Answer 5.", "some answers say how long something has taken"


def test_before_both_lists_are_read_only_the_messages_count(explained: Explained, cluster: FakeCluster) -> None:
    ask(new_runtime({LOCAL: cluster}), waiting())
    assert explained.scheduling == [None], "room that is not read yet would look free"


def test_a_pod_with_a_node_depends_on_no_pool(explained: Explained, cluster: FakeCluster) -> None:
    runtime = runtime_of(cluster)
    (runs,) = runtime.pods.values()
    ask(runtime, runs)
    assert explained.scheduling == [None]
    assert runtime.explainer.topics(runs) == {("nodes", NAME, "f1")}, "which may be deleted"
    assert room_topic("fast") in runtime.explainer.topics(waiting())
    assert "volumes" not in runtime.explainer.topics(waiting())
    claim = [{"name": "project", "persistentVolumeClaim": {"claimName": "c"}}]
    assert "volumes" in runtime.explainer.topics(waiting(volumes=claim))


def test_word_of_karpenter_gives_its_pod_another_answer(cluster: FakeCluster) -> None:
    cluster.put(PODS, builders.pod("w2"))
    chosen = builders.event(
        "e", about=builders.pod("w2"), reason="Nominated", message="Pod should schedule on: nodeclaim/a"
    )
    cluster.put(EVENTS, {**chosen, "reportingComponent": "karpenter"})
    runtime = runtime_of(cluster)
    assert "NodeClaim" not in ask(runtime, waiting("w1"))
    assert "NodeClaim a" in ask(runtime, waiting("w2"))


def test_earlier_choice_of_karpenter_gives_its_pod_another_answer(cluster: FakeCluster) -> None:
    chosen = [("w3", "b", 120), ("w2", "a", 60), ("w2", "b", 120)]
    for name, claim, seconds in chosen:
        cluster.put(PODS, builders.pod(name))
        at, says = MOMENT + timedelta(seconds=seconds), f"Pod should schedule on: nodeclaim/{claim}"
        event = builders.event(f"{name}{claim}", about=builders.pod(name), reason="Nominated", message=says, at=at)
        cluster.put(EVENTS, {**event, "reportingComponent": "karpenter"})
    runtime = runtime_of(cluster)
    assert "is starting a node for this (the NodeClaim b)" in ask(runtime, waiting("w3"))
    assert "has chosen 2 nodes" in ask(runtime, waiting("w2"))


def test_pod_of_a_deleted_node_says_so_and_who_acts(cluster: FakeCluster) -> None:
    statuses = [builders.container_status(ready=True, state={"running": {"startedAt": stamp(MOMENT)}})]
    runs = builders.pod("p", node="f1", phase="Running", ready=True, statuses=statuses)
    runs["status"]["startTime"] = stamp(MOMENT)
    cluster.put(PODS, runs)
    runtime = runtime_of(cluster)
    (pod,) = [pod for pod in runtime.pods.by("node", "f1") if pod.metadata.name == "p"]
    assert runtime.explainer.explain(pod, names_others=False, now=LATER).severity == "ok"
    cluster.remove(NODES, "f1")
    fill(runtime, cluster)
    why = runtime.explainer.explain(pod, names_others=False, now=LATER)
    assert (why.code, why.severity, why.who) == ("node_lost", "problem", "you")
    assert why.sentence.startswith("Node f1 was deleted from the cluster;")
    assert why.next_step.startswith("Stop it and launch it again")
    early = runtime.explainer.explain(pod, names_others=False, now=MOMENT + timedelta(seconds=2))
    assert early.severity == "ok", "its node may only not be listed yet"
    runtime.nodes.mark_failed("The cluster does not answer.", 0.0)
    assert runtime.explainer.explain(pod, names_others=False, now=LATER).severity == "ok", "nobody knows"
