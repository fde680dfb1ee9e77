"""What a person is told about a pod that has a node or has ended, case by case."""

from typing import Any

import pytest

from grid.core.labels import KEYS
from tests.diagnosis.situations import Case, ago, assert_explained, assert_told_as_stored, ended, said
from tests.support.builders import condition, container_status, pod


def finished(phase: str, **status: Any) -> dict[str, Any]:
    return pod("p", node="node-1", phase=phase, status=status)


def with_containers(phase: str, *states: dict[str, Any]) -> dict[str, Any]:
    return pod(
        "p", node="node-1", phase=phase,
        statuses=[container_status(f"c{place}", state=state) for place, state in enumerate(states)],
    )  # fmt: skip


def was_ready(*conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A pod whose container last said that it is ready; `conditions` say what its node says since."""
    return pod("p", node="node-1", statuses=[container_status(ready=True)], conditions=list(conditions), **more)


def over_time(state: dict[str, Any], *, began: float) -> dict[str, Any]:
    """A run of at most a minute with an nginx that is no sidecar and went on until Kubernetes ended both."""
    return pod(
        "p", node="node-1", phase="Failed", labels={KEYS.execution: "abc"},
        containers=[{"name": "run"}, {"name": "nginx"}], spec={"activeDeadlineSeconds": 60},
        statuses=[container_status("run", state=state), container_status("nginx", state=ended(137, seconds=0))],
        status={"reason": "DeadlineExceeded", "startTime": ago(began)},
    )  # fmt: skip


def evicted(message: str, **more: Any) -> dict[str, Any]:
    return pod(
        "p", node="node-1", phase="Failed", status={"reason": "Evicted", "message": f"The node was {message}"}, **more
    )


def held_by(*finalizers: str, seconds: float = 600, **more: Any) -> dict[str, Any]:
    """A pod that should have been gone for that long."""
    return pod("p", deletionTimestamp=ago(seconds), finalizers=list(finalizers), **more)


FINALIZER = "example.com/hold"
SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
LOST = ("node_lost", "node-1 no longer answers")
RUNNING = ("running", "Running.")
TAINTED = condition(
    "DisruptionTarget", "True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
)
RUNS = {"running": {"startedAt": ago(5)}}
CASES = [
    Case("node just chosen", pod("p", node="node-1"), "preparing", "Node node-1 was chosen"),
    Case("succeeded", finished("Succeeded"), "completed", "without an error"),
    Case("succeeded with last words", with_containers("Succeeded", ended(0, "Completed", message="42")), "completed", "without"),
    Case(
        "failed with a container",
        with_containers("Failed", ended(0, "Completed"), ended(3), ended(4)), "exit_code", "exit code 3",
    ),
    Case(
        "evicted",
        finished("Failed", reason="Evicted", message="The node was low on resource: memory."), "evicted", "ran short of memory and evicted",
    ),
    Case(
        "evicted for the node's disk, not for its own limit",
        finished(
            "Failed", reason="Evicted",
            message="The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. Container run was "
            "using 5Gi, request is 1Gi, has larger consumption of ephemeral-storage. ",
        ),
        "evicted", "ran short of disk and evicted this: it used 5 GiB and requests 1 GiB.",
    ),
    Case(
        "evicted for process ids",
        finished("Failed", reason="Evicted", message="The node was low on resource: pids. "), "evicted", "ran short of process ids",
    ),
    Case(
        "evicted for memory that it did not request",
        evicted("low on resource: memory. Container run was using 2345Mi, request is 0, has larger consumption of memory. "),
        "evicted", "evicted this: it used 2.3 GiB and requests none.",
    ),
    Case(
        "evicted for memory of two of its containers",
        evicted(
            "low on resource: memory. Container a was using 1536Mi, request is 1Gi, has larger consumption of memory. "
            "Container b was using 3Gi, request is 0, has larger consumption of memory. ",
            containers=[{"name": "a"}, {"name": "b"}],
        ),
        "evicted", "container a used 1.5 GiB and requests 1 GiB; container b used 3 GiB and requests none.",
    ),
    Case(
        "evicted for a container beside a sidecar",
        evicted(
            "low on resource: memory. Container run was using 3Gi, request is 1Gi, has larger consumption of memory. ",
            containers=[{"name": "run"}], spec={"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]},
        ),
        "evicted", "container run used 3 GiB",
    ),
    Case(
        "evicted for a resource without a unit",
        evicted("low on resource: inodes. Container run was using 5k, request is 0, has larger consumption of inodes. "),
        "evicted", "ran short of disk and evicted this: it used 5k and requests none.",
    ),
    Case(
        "evicted for an amount that cannot be read",
        evicted("low on resource: memory. Container run was using lots, request is few, has larger consumption of memory. "),
        "evicted", "it used lots and requests few.",
    ),
    Case("evicted for another resource", evicted("low on resource: example.com/fpga. "), "evicted", "ran short of example.com/fpga and"),
    Case("evicted without a word", finished("Failed", reason="Evicted"), "evicted", "The node evicted this, and does not say why."),
    Case(
        "evicted with odd words",
        finished("Failed", reason="Evicted", message="The moon is\n in the wrong phase. "),
        "evicted", "The node evicted this: The moon is in the wrong phase.",
    ),
    *(
        Case(
            f"not taken for {kind}", finished("Failed", reason="Evicted", message=f"The node had condition: [{kind}]. "),
            "evicted", f"The node was short of {words} and did not take this.",
        )
        for kind, words in (("MemoryPressure", "memory"), ("DiskPressure", "disk"), ("PIDPressure", "process ids"))
    ),
    Case(
        "shared memory is full",
        finished("Failed", reason="Evicted", message='Usage of EmptyDir volume "shared-memory" exceeds the limit "1Gi". '),
        "storage_limit", "more shared memory (/dev/shm) than the 1 GiB that its tier allows",
    ),
    Case("ended before its time was over", over_time(ended(0, "Completed", seconds=30), began=61), "completed", "ended"),
    Case("failed before its time was over", over_time(ended(3, seconds=30), began=61), "exit_code", "exit code 3"),
    Case("ended at the deadline", over_time(ended(0, "Completed", seconds=0), began=61), "deadline", "ran longer"),
    Case(
        "too long",
        finished("Failed", reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline"),
        "deadline", "ran longer",
    ),
    *(
        Case(name, finished("Failed", reason="Evicted", message=said), "storage_limit", "than its tier allows")
        for name, said in (
            ("wrote too much", "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. "),
            ("one container did", 'Container run exceeded its local ephemeral storage limit "10Gi". '),
        )
    ),
    *(
        Case(
            f"the volume {name} is full",
            finished("Failed", reason="Evicted", message=f'Usage of EmptyDir volume "{name}" exceeds the limit "10Gi". '),
            "storage_limit", words,
        )
        for name, words in (
            ("local", "It wrote more than 10 GiB to the volume local on its node's disk"),
            ("dshm", "It wrote more than 10 GiB to the emptyDir volume dshm, which is its limit"),
        )
    ),
    Case("node lost", finished("Failed", reason="NodeLost"), *LOST),
    Case("unknown phase", finished("Unknown"), *LOST),
    Case(
        "collected with its node",
        finished("Failed", conditions=[condition("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")]),
        "node_lost", "Node node-1 no longer exists.",
    ),
    Case(
        "spared",
        finished("Failed", conditions=[condition("DisruptionTarget", "False", "DeletionByPodGC"), condition("Ready", "True")]),
        "failed", "does not say why",
    ),
    *(
        Case(
            name, finished("Failed", conditions=[condition("DisruptionTarget", "True", reason, message)], **more), "disrupted", words
        )
        for name, reason, message, words, more in (
            ("drained", "EvictionByEvictionAPI", "Eviction API: evicting", "because it was evicted through the Eviction API", {}),
            (
                "preempted", "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod",
                "because the scheduler preempted it for a pod of higher priority.", {},
            ),
            ("tainted", "DeletionByTaintManager", "Taint manager: deleting", "a taint that it does not tolerate.", {}),
            ("shut down", "TerminationByKubelet", SHUTDOWN, "because its node shuts down.", {"reason": "Terminated", "message": SHUTDOWN}),
            ("shut down, said by the reason alone", "TerminationByKubelet", "", "because its node shuts down.", {"reason": "Terminated"}),
            (
                "critical pod", "TerminationByKubelet", "Pod was preempted by Kubelet to accommodate a critical pod.",
                "because its node makes room for a critical pod.", {"reason": "Preempting"},
            ),
            (
                "ended for want of disk", "TerminationByKubelet", "The node was low on resource: ephemeral-storage. ",
                "because its node is short of disk.", {},
            ),
            ("ended by its node", "TerminationByKubelet", "", "Kubernetes ended this: TerminationByKubelet.", {}),
            ("disrupted with odd words", "MoonPhase", "the moon is in the wrong phase", "Kubernetes ended this: the moon is", {}),
            ("disrupted without words", "MoonPhase", "", "Kubernetes ended this: MoonPhase.", {}),
            ("disrupted without a reason", "", "", "Kubernetes ended this, and does not say why.", {}),
        )
    ),
    *(
        Case(
            f"refused, {reason}", finished("Failed", reason=reason, message=message and f"Pod was rejected: {message}"),
            "refused_by_node", f"Node node-1 {words}.",
        )
        for reason, message, words in (
            ("OutOfcpu", "", "had too little CPU left for this"),
            (
                "OutOfcpu", "Node didn't have enough resource: cpu, requested: 1000, used: 6500, capacity: 7920",
                "had too little CPU left for this: it requests 1 core, and 1.42 cores of 7.92 cores were free",
            ),
            (
                "OutOfmemory", f"Node didn't have enough resource: memory, requested: {2**34}, used: {2**35}, capacity: {2**34}",
                "had too little memory left for this: it requests 16 GiB, and 0 B of 16 GiB were free",
            ),
            (
                "OutOfephemeral-storage", "Node didn't have enough resource: ephemeral-storage, requested: 2048, used: 0, capacity: 1024",
                "had too little disk left for this: it requests 2 KiB, and 1 KiB of 1 KiB were free",
            ),
            (
                "OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu, requested: 2, used: 3, capacity: 4",
                "had too few GPUs left for this: it requests 2, and 1 of 4 were free",
            ),
            ("OutOfexample.com/fpga", "", "had too little example.com/fpga left for this"),
            ("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110",
             "had no room for another pod: it ran 110 of at most 110"),
            ("OutOfpods", "", "had no room for another pod"),
            (
                "UnexpectedAdmissionError", "Allocate failed due to no healthy devices present, which is unexpected",
                "rejected this: Allocate failed due to no healthy devices present, which is unexpected",
            ),
            ("UnexpectedAdmissionError", "", "rejected this (UnexpectedAdmissionError)"),
            ("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
             "rejected this: its labels do not match what this asks for"),
            ("Preempting", "", "ended this to make room for a critical pod"),
            ("Terminated", "", "shut down and ended this"),
            ("NodeShutdown", "", "was shutting down and did not take this"),
        )
    ),
    Case("failed with odd words", finished("Failed", reason="Odd", message="unheard of"), "failed", "It failed: unheard of."),
    Case("failed with a reason alone", finished("Failed", reason="Odd"), "failed", "It failed: Odd."),
    Case("failed silently", finished("Failed"), "failed", "does not say why"),
    *(
        Case(name, was_ready(condition("Ready", "False", message=why)), *found, [said(reason, message)])
        for name, why, found, reason, message in (
            ("silent node", "", LOST, "NodeNotReady", "Node is not ready"),
            ("silent node that is to be left", "lost", LOST, "TaintManagerEviction", "Marking for deletion"),
            (
                "silent node that answered before it was left",
                "", RUNNING, "TaintManagerEviction", "Cancelling deletion of Pod compute-grid/p",
            ),
        )
    ),
    Case(
        "nobody knows whether it is ready, and it was starting",
        pod("p", node="node-1", statuses=[container_status(state=RUNS)], conditions=[condition("Ready", "Unknown", message="gone")]),
        *LOST,
    ),
    Case(
        "deleted on a silent node",
        was_ready(condition("Ready", "False"), TAINTED, deletionTimestamp=ago(-20)), *LOST,
        [said("NodeNotReady", "Node is not ready")],
    ),
    Case(
        "left because of a taint, and nobody confirms its end",
        pod("p", node="node-1", deletionTimestamp=ago(61), conditions=[TAINTED]), *LOST,
    ),
    Case(
        "left because of a taint, on a node that answers",
        was_ready(condition("Ready", "True"), TAINTED, deletionTimestamp=ago(-20)),
        "ending", "Ending because its node has a taint that it does not tolerate: the program is given time",
    ),
    Case("not ready on a node that answers", was_ready(condition("Ready", "False")), *RUNNING, [said("Pulled", "")]),
    Case("nobody says whether it is ready", was_ready(), *RUNNING, [said("NodeNotReady", "Node is not ready")]),
    Case(
        "node that answers again",
        was_ready(condition("Ready", "True")), *RUNNING, [said("NodeNotReady", "Node is not ready")],
    ),
    Case(
        "not ready by itself, the node was silent before",
        pod("p", node="node-1", statuses=[container_status(ready=True), container_status("b", state=RUNS)]),
        "starting", "does not answer yet",
        [said("NodeNotReady", "Node is not ready", seconds=900)],
    ),
    Case(
        "nothing runs yet on a node that was silent",
        pod("p", node="node-1"), "preparing", "Node node-1 was chosen",
        [said("NodeNotReady", "Node is not ready", seconds=900)],
    ),
    Case("lost before it had a node", pod("p", phase="Unknown"), "node_lost", "Its node no longer answers."),
    Case(
        "ending because of a drain",
        pod(
            "p", node="node-1", deletionTimestamp=ago(-20),
            conditions=[condition("Ready", "True"), condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "drain")],
        ),
        "ending", "Ending because it was evicted through the Eviction API, as when its node is drained: the program",
    ),
    Case("ending for a minute more", pod("p", node="node-1", deletionTimestamp=ago(60)), "ending", "time to close"),
    Case("stuck without a node", pod("p", deletionTimestamp=ago(61)), "stuck_ending", "61 seconds ago; it has no node"),
    *(
        Case(name, found, "stuck_ending", words)
        for name, found, words in (
            ("finalized without a node", held_by(FINALIZER), "example.com/hold has kept this from being deleted for 10 minutes."),
            ("finalized by two", held_by(FINALIZER, "b"), "The finalizers example.com/hold and b have kept this"),
            (
                "finalized, confirmed by its node",
                held_by(FINALIZER, node="node-1", deletionGracePeriodSeconds=0, statuses=[container_status(state=RUNS)]),
                "The finalizer example.com/hold has kept",
            ),
            (
                "finalized, its containers have ended",
                held_by(FINALIZER, node="node-1", statuses=[container_status(state=ended(0))]), "The finalizer example.com/hold has kept",
            ),
            (
                "finalized on a node that is left because of a taint",
                held_by(FINALIZER, node="node-1", deletionGracePeriodSeconds=0, conditions=[TAINTED]), "The finalizer example.com/hold",
            ),
            (
                "finalized, and its node does not confirm its end",
                held_by(FINALIZER, node="node-1", deletionGracePeriodSeconds=30, statuses=[container_status(state=RUNS)]),
                "10 minutes ago, but node node-1 does not confirm that. It is also held by example.com/hold (finalizers).",
            ),
            (
                "its containers have ended, and its node holds it",
                held_by(node="node-1", statuses=[container_status(state=ended(0))]),
                "Its containers have ended, but node node-1 has not cleaned up after them for 10 minutes.",
            ),
            (
                "one of its containers has ended",
                held_by(node="node-1", statuses=[container_status(state=ended(0)), container_status("b", state=RUNS)]),
                "but node node-1 does not confirm that.",
            ),
        )
    ),
    Case(
        "finalized a moment ago",
        held_by(FINALIZER, seconds=60, node="node-1", deletionGracePeriodSeconds=0), "ending", "waiting for the finalizer example.com/hold",
    ),
    Case(
        "stuck in a drain",
        pod("p", node="node-1", deletionTimestamp=ago(600), conditions=[condition("DisruptionTarget", "True", "", "drain")]),
        "stuck_ending", "10 minutes ago",
    ),
    Case("worst of two", with_containers("Running", RUNS, ended(1)), "exit_code", "exit code 1"),
    Case("first of two alike", with_containers("Running", ended(2), ended(1)), "exit_code", "exit code 2"),
    Case("ending", pod("p", node="node-1", deletionTimestamp=ago(-20)), "ending", "time to close its files"),
    Case(
        "stuck",
        pod("p", node="node-1", deletionTimestamp=ago(600)), "stuck_ending", "10 minutes ago",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pod_is_explained_in_words(case: Case) -> None:
    assert_explained(case)


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-pods", CASES)
