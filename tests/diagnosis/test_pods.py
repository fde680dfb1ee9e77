"""What a person is told about a pod, case by case."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.pods import Diagnosis, explain_pod
from grid.kube.objects import Event, Pod
from grid.labels import NODE_POOL
from tests.support.builders import MOMENT, condition, container_status, decode, event, pod, stamp

GPU = {"nodeSelector": {NODE_POOL: "default-gpu"}}
MISMATCH = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. {rest}"
HOPELESS = (
    "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
)
NO_VICTIMS = (
    "no new claims to deallocate, preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
)


def ago(seconds: float) -> str:
    return stamp(MOMENT - timedelta(seconds=seconds))


def said(reason: str, message: str, *, seconds: float = 0) -> dict[str, Any]:
    return event(f"{reason}-{seconds}", reason=reason, message=message, at=MOMENT - timedelta(seconds=seconds))


def waiting_for_a_node(message: str, *, age: float = 120, **more: Any) -> dict[str, Any]:
    unscheduled = condition("PodScheduled", "False", "Unschedulable", message)
    created = MOMENT - timedelta(seconds=age)
    return pod("p", conditions=[unscheduled] if message else [], created=created, spec=GPU, **more)


def on_a_node(state: dict[str, Any] | None = None, *, ready: bool = False, **more: Any) -> dict[str, Any]:
    limits = {"requests": {"memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    status = container_status(state=state, ready=ready, **more)
    return pod(
        "p", node="node-1", containers=[{"name": "run", "image": "lab:4", "resources": limits}], statuses=[status]
    )


def finished(phase: str, **status: Any) -> dict[str, Any]:
    return pod("p", node="node-1", phase=phase, status=status)


def waits(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return on_a_node({"waiting": {"reason": reason, "message": message}}, **more)


def runs(since: float, **more: Any) -> dict[str, Any]:
    return on_a_node({"running": {"startedAt": ago(since)}}, **more)


def ended(exit_code: int, reason: str = "Error", *, seconds: float = 5) -> dict[str, Any]:
    return {"terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": ago(seconds)}}


@dataclass(frozen=True)
class Case:
    name: str
    pod: dict[str, Any]
    code: str
    severity: str
    who: str
    words: str
    events: list[dict[str, Any]] = field(default_factory=list)


SCALE_UP = "pod triggered scale-up: [{default-gpu 0->1 (max: 2)}]"
CASES = [
    Case("young and nothing said", waiting_for_a_node("", age=3), "scheduling", "wait", "", "Looking for a node."),
    Case("scheduler down", waiting_for_a_node("", age=90), "scheduler_silent", "problem", "operator", "may be down"),
    Case(
        "first impression of an empty pool",
        waiting_for_a_node(MISMATCH.format(rest=HOPELESS), age=5),
        "scheduling", "wait", "", "No node of the pool default-gpu is free yet; looking.",
    ),
    Case(
        "scale-up under way",
        waiting_for_a_node(MISMATCH.format(rest=HOPELESS), age=200),
        "scale_up", "wait", "",
        "A new node is being started for you in the pool default-gpu (from 0 to 1 of at most 2)",
        [said("FailedScheduling", "x", seconds=100), said("TriggeredScaleUp", SCALE_UP, seconds=90)],
    ),
    Case(
        "scale-up that never came",
        waiting_for_a_node(MISMATCH.format(rest=HOPELESS), age=2000),
        "scale_up_slow", "problem", "operator", "was asked for 20 minutes ago and has not come",
        [said("TriggeredScaleUp", SCALE_UP, seconds=1200)],
    ),
    Case(
        "pool at its maximum",
        waiting_for_a_node(f"0/3 nodes are available: 3 Insufficient nvidia.com/gpu. {NO_VICTIMS}"),
        "pool_full", "wait", "admin", "the pool has as many nodes as it may have",
        [said("NotTriggerScaleUp", "pod didn't trigger scale-up: 2 Insufficient nvidia.com/gpu, 1 max node group size reached")],
    ),
    Case(
        "no machine type is large enough",
        waiting_for_a_node(f"0/3 nodes are available: 3 Insufficient memory. {HOPELESS}"),
        "too_large", "problem", "admin", "not even an empty one: memory on 3 nodes",
        [said("NotTriggerScaleUp", "pod didn't trigger scale-up: 3 Insufficient memory")],
    ),
    Case(
        "cloud out of stock",
        waiting_for_a_node(MISMATCH.format(rest=HOPELESS)),
        "no_stock", "wait", "operator", "The cloud could not deliver a new node of the pool default-gpu",
        [said("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff after failed scale-up, 2 node(s) didn't match")],
    ),
    Case(
        "busy without an autoscaler",
        waiting_for_a_node(f"0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu. {NO_VICTIMS}"),
        "busy", "wait", "you", "room for another pod on 1 node and CPU on 2 nodes",
    ),
    Case(
        "tainted",
        waiting_for_a_node(f"0/3 nodes are available: 3 node(s) had untolerated taint(s). {HOPELESS}"),
        "tainted", "problem", "operator", "3 nodes cannot take this",
    ),
    Case(
        "cordoned",
        waiting_for_a_node(f"0/3 nodes are available: 3 node(s) were unschedulable. {HOPELESS}"),
        "cordoned", "problem", "operator", "may not take new work",
    ),
    Case(
        "empty pool that stays empty",
        waiting_for_a_node(MISMATCH.format(rest=HOPELESS)),
        "no_such_node", "problem", "admin", "There is no node of the pool default-gpu, and none is being started.",
    ),
    Case(
        "no volume",
        waiting_for_a_node('0/3 nodes are available: persistentvolumeclaim "data" not found. not found'),
        "volume", "problem", "admin", "There is no volume for the project's files.",
    ),
    Case(
        "volume being made",
        waiting_for_a_node("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found", age=5),
        "volume", "wait", "", "is not ready yet",
    ),
    Case(
        "gated",
        pod("p", conditions=[condition("PodScheduled", "False", "SchedulingGated", "")]),
        "gated", "wait", "operator", "holds this back",
    ),
    Case("node just chosen", pod("p", node="node-1"), "preparing", "wait", "", "Node node-1 was chosen"),
    Case("creating", waits("ContainerCreating"), "preparing", "wait", "", "volumes, network, image"),
    Case(
        "pulling",
        waits("ContainerCreating"), "pulling", "wait", "", "downloads the image lab:4, for 40 seconds so far",
        [said("Pulling", 'Pulling image "lab:4"', seconds=40)],
    ),
    Case(
        "image missing",
        waits("ImagePullBackOff", 'Back-off pulling image "lab:4"'),
        "image", "problem", "admin", "there is no such image",
        [said("Failed", 'Failed to pull image "lab:4": not found')],
    ),
    Case("image refused", waits("ErrImagePull", "401 Unauthorized"), "image", "problem", "admin", "refuses access"),
    Case("image unnamed", waits("InvalidImageName", "couldn't parse image"), "image", "problem", "admin", "not valid"),
    Case("registry down", waits("ErrImagePull", "i/o timeout"), "image", "problem", "admin", "does not deliver"),
    Case(
        "files on another node",
        waits("ContainerCreating"), "volume_mount", "problem", "you", "in use on another node",
        [said("FailedAttachVolume", "Multi-Attach error for volume")],
    ),
    Case(
        "files not attached",
        waits("ContainerCreating"), "volume_mount", "problem", "operator", "cannot be attached",
        [said("FailedMount", "timed out waiting for the condition")],
    ),
    Case(
        "mounted at last",
        waits("ContainerCreating"), "pulling", "wait", "", "downloads",
        [said("FailedMount", "timed out", seconds=60), said("Pulling", "", seconds=1)],
    ),
    Case(
        "sandbox",
        waits("ContainerCreating"), "sandbox", "problem", "operator", "network or sandbox",
        [said("FailedCreatePodSandBox", "cni")],
    ),
    Case("bad config", waits("CreateContainerConfigError", "no secret"), "container", "problem", "admin", "environment"),
    Case(
        "crash loop",
        waits("CrashLoopBackOff", "back-off 40s", restarts=4, lastState=ended(1)),
        "crash_loop", "problem", "you", "keeps crashing (4 restarts): exit code 1.",
    ),
    Case(
        "command not found",
        waits("CrashLoopBackOff", restarts=1, lastState=ended(127)),
        "crash_loop", "problem", "admin", "exit code 127, its command was not found",
    ),
    Case(
        "out of memory again and again",
        waits("CrashLoopBackOff", restarts=2, lastState=ended(137, "OOMKilled")),
        "out_of_memory", "problem", "you", "more memory than its limit of 4 GiB",
    ),
    Case(
        "out of memory for good",
        on_a_node(ended(137, "OOMKilled")), "out_of_memory", "problem", "you", "its limit of 4 GiB and was ended.",
    ),
    Case(
        "out of memory, running again",
        runs(4, ready=True, restarts=1, lastState=ended(137, "OOMKilled")),
        "out_of_memory", "problem", "you", "It was started again.",
    ),
    Case(
        "crashed, running again",
        runs(4, ready=True, restarts=1, lastState=ended(139)), "restarted", "problem", "you", "segmentation fault",
    ),
    Case(
        "crashed long ago",
        runs(7000, ready=True, restarts=1, lastState=ended(139, seconds=7000)), "running", "ok", "", "Running.",
    ),
    Case(
        "starting",
        runs(5), "starting", "wait", "", "does not answer yet",
        [said("Unhealthy", "Readiness probe failed: connection refused")],
    ),
    Case("hanging", runs(900), "not_answering", "problem", "you", "Running for 15 minutes without answering"),
    Case("running", runs(900, ready=True), "running", "ok", "", "Running."),
    Case("job done", on_a_node(ended(0, "Completed")), "completed", "ok", "", "without an error"),
    Case("job failed", on_a_node(ended(3)), "exit_code", "problem", "you", "exit code 3"),
    Case("succeeded", finished("Succeeded"), "completed", "ok", "", "without an error"),
    Case("evicted", finished("Failed", reason="Evicted"), "evicted", "problem", "you", "ran short of memory or disk"),
    *(
        Case(name, finished("Failed", reason="Evicted", message=said), "storage_limit", "problem", "you", "than its tier allows")
        for name, said in (
            ("wrote too much", "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. "),
            ("one container did", 'Container run exceeded its local ephemeral storage limit "10Gi". '),
            ("a volume is full", 'Usage of EmptyDir volume "local" exceeds the limit "10Gi". '),
        )
    ),
    Case("node lost", finished("Failed", reason="NodeLost"), "node_lost", "problem", "operator", "node-1 does not answer"),
    Case("unknown phase", finished("Unknown"), "node_lost", "problem", "operator", "node-1 does not answer"),
    Case(
        "collected with its node",
        finished("Failed", conditions=[condition("DisruptionTarget", "True", "DeletionByPodGC", "node gone")]),
        "node_lost", "problem", "operator", "node-1 does not answer",
    ),
    Case(
        "drained",
        finished("Failed", conditions=[condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "drain")]),
        "disrupted", "problem", "operator", "took this off its node",
    ),
    Case("refused", finished("Failed", reason="OutOfcpu"), "refused_by_node", "problem", "operator", "did not take"),
    Case("failed silently", finished("Failed"), "failed", "problem", "operator", "does not say why"),
    Case(
        "silent node",
        pod("p", node="node-1", statuses=[container_status(ready=True)], conditions=[condition("Ready", "False")]),
        "node_lost", "problem", "operator", "node-1 does not answer",
        [said("NodeNotReady", "Node is not ready")],
    ),
    Case("ending", pod("p", node="node-1", deletionTimestamp=ago(-20)), "ending", "wait", "", "time to close its files"),
    Case(
        "stuck",
        pod("p", node="node-1", deletionTimestamp=ago(600)), "stuck_ending", "problem", "operator", "10 minutes ago",
    ),
]  # fmt: skip


def explain(case: Case) -> Diagnosis:
    return explain_pod(decode(case.pod, Pod), [decode(one, Event) for one in case.events], now=MOMENT)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_is_explained_in_words(case: Case) -> None:
    found = explain(case)
    assert (found.code, found.severity, found.who) == (case.code, case.severity, case.who)
    assert case.words in found.sentence
    assert found.sentence.endswith(".")


def test_the_evidence_is_kubernetes_own_words() -> None:
    case = next(case for case in CASES if case.name == "scale-up under way")
    assert explain(case).evidence == (MISMATCH.format(rest=HOPELESS), SCALE_UP)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_problem_says_who_can_do_what(case: Case) -> None:
    found = explain(case)
    if found.severity == "problem":
        assert found.who
        assert found.next_step
