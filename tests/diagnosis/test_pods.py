"""What a person is told about a pod that has a node or has ended, case by case."""

from typing import Any

from grid.core.labels import KEYS
from tests.diagnosis.situations import Case, ago, assert_told_as_stored, ended, event_saying
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
TAINTED = condition(
    "DisruptionTarget", "True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
)
RUNS = {"running": {"startedAt": ago(5)}}
CASES = [
    Case("node just chosen", pod("p", node="node-1")),
    Case("succeeded", finished("Succeeded")),
    Case("failed with a container", with_containers("Failed", ended(0, "Completed"), ended(3), ended(4))),
    Case("evicted", finished("Failed", reason="Evicted", message="The node was low on resource: memory.")),
    Case(
        "evicted for the node's disk, not for its own limit",
        finished(
            "Failed", reason="Evicted",
            message="The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. Container run was "
            "using 5Gi, request is 1Gi, has larger consumption of ephemeral-storage. ",
        )
    ),
    Case("evicted for process ids", finished("Failed", reason="Evicted", message="The node was low on resource: pids. ")),
    Case(
        "evicted for memory that it did not request",
        evicted("low on resource: memory. Container run was using 2345Mi, request is 0, has larger consumption of memory. ")
    ),
    Case(
        "evicted for memory of two of its containers",
        evicted(
            "low on resource: memory. Container a was using 1536Mi, request is 1Gi, has larger consumption of memory. "
            "Container b was using 3Gi, request is 0, has larger consumption of memory. ",
            containers=[{"name": "a"}, {"name": "b"}],
        )
    ),
    Case(
        "evicted for a container beside a sidecar",
        evicted(
            "low on resource: memory. Container run was using 3Gi, request is 1Gi, has larger consumption of memory. ",
            containers=[{"name": "run"}], spec={"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]},
        )
    ),
    Case(
        "evicted for a resource without a unit",
        evicted("low on resource: inodes. Container run was using 5k, request is 0, has larger consumption of inodes. ")
    ),
    Case(
        "evicted for an amount that cannot be read",
        evicted("low on resource: memory. Container run was using lots, request is few, has larger consumption of memory. ")
    ),
    Case("evicted for another resource", evicted("low on resource: example.com/fpga. ")),
    Case("evicted without a word", finished("Failed", reason="Evicted")),
    Case("evicted with odd words", finished("Failed", reason="Evicted", message="The moon is\n in the wrong phase. ")),
    *(
        Case(f"not taken for {kind}", finished("Failed", reason="Evicted", message=f"The node had condition: [{kind}]. "))
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ),
    Case(
        "shared memory is full",
        finished("Failed", reason="Evicted", message='Usage of EmptyDir volume "shared-memory" exceeds the limit "1Gi". ')
    ),
    Case("ended before its time was over", over_time(ended(0, "Completed", seconds=30), began=61)),
    Case("failed before its time was over", over_time(ended(3, seconds=30), began=61)),
    Case("ended at the deadline", over_time(ended(0, "Completed", seconds=0), began=61)),
    Case(
        "too long",
        finished("Failed", reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline")
    ),
    *(
        Case(name, finished("Failed", reason="Evicted", message=message))
        for name, message in (
            ("wrote too much", "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. "),
            ("one container did", 'Container run exceeded its local ephemeral storage limit "10Gi". '),
        )
    ),
    *(
        Case(
            f"the volume {name} is full",
            finished("Failed", reason="Evicted", message=f'Usage of EmptyDir volume "{name}" exceeds the limit "10Gi". ')
        )
        for name in ("local", "dshm")
    ),
    Case("node lost", finished("Failed", reason="NodeLost")),
    Case(
        "collected with its node",
        finished("Failed", conditions=[condition("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")])
    ),
    Case(
        "spared",
        finished("Failed", conditions=[condition("DisruptionTarget", "False", "DeletionByPodGC"), condition("Ready", "True")])
    ),
    *(
        Case(name, finished("Failed", conditions=[condition("DisruptionTarget", "True", reason, message)], **more))
        for name, reason, message, more in (
            ("drained", "EvictionByEvictionAPI", "Eviction API: evicting", {}),
            ("preempted", "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod", {}),
            ("tainted", "DeletionByTaintManager", "Taint manager: deleting", {}),
            ("shut down", "TerminationByKubelet", SHUTDOWN, {"reason": "Terminated", "message": SHUTDOWN}),
            (
                "critical pod", "TerminationByKubelet", "Pod was preempted by Kubelet to accommodate a critical pod.",
                {"reason": "Preempting"},
            ),
            ("ended for want of disk", "TerminationByKubelet", "The node was low on resource: ephemeral-storage. ", {}),
            ("ended by its node", "TerminationByKubelet", "", {}),
            ("disrupted with odd words", "MoonPhase", "the moon is in the wrong phase", {}),
            ("disrupted without words", "MoonPhase", "", {}),
            ("disrupted without a reason", "", "", {}),
        )
    ),
    *(
        Case(f"refused, {reason}", finished("Failed", reason=reason, message=message and f"Pod was rejected: {message}"))
        for reason, message in (
            ("OutOfcpu", ""),
            ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 1000, used: 6500, capacity: 7920"),
            ("OutOfmemory", f"Node didn't have enough resource: memory, requested: {2**34}, used: {2**35}, capacity: {2**34}"),
            ("OutOfephemeral-storage", "Node didn't have enough resource: ephemeral-storage, requested: 2048, used: 0, capacity: 1024"),
            ("OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu, requested: 2, used: 3, capacity: 4"),
            ("OutOfexample.com/fpga", ""),
            ("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110"),
            ("OutOfpods", ""),
            ("UnexpectedAdmissionError", "Allocate failed due to no healthy devices present, which is unexpected"),
            ("UnexpectedAdmissionError", ""),
            ("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"),
            ("Preempting", ""),
            ("Terminated", ""),
            ("NodeShutdown", ""),
        )
    ),
    Case("failed with odd words", finished("Failed", reason="Odd", message="unheard of")),
    Case("failed with a reason alone", finished("Failed", reason="Odd")),
    Case("failed silently", finished("Failed")),
    *(
        Case(name, was_ready(condition("Ready", "False", message=why)), [event_saying(reason, message)])
        for name, why, reason, message in (
            ("silent node", "", "NodeNotReady", "Node is not ready"),
            ("silent node that is to be left", "lost", "TaintManagerEviction", "Marking for deletion"),
            ("silent node that answered before it was left", "", "TaintManagerEviction", "Cancelling deletion of Pod compute-grid/p"),
        )
    ),
    Case(
        "nobody knows whether it is ready, and it was starting",
        pod("p", node="node-1", statuses=[container_status(state=RUNS)], conditions=[condition("Ready", "Unknown", message="gone")])
    ),
    Case(
        "deleted on a silent node",
        was_ready(condition("Ready", "False"), TAINTED, deletionTimestamp=ago(-20)), [event_saying("NodeNotReady", "Node is not ready")]
    ),
    Case(
        "left because of a taint, and nobody confirms its end",
        pod("p", node="node-1", deletionTimestamp=ago(61), conditions=[TAINTED])
    ),
    Case("left because of a taint, on a node that answers", was_ready(condition("Ready", "True"), TAINTED, deletionTimestamp=ago(-20))),
    Case("not ready on a node that answers", was_ready(condition("Ready", "False")), [event_saying("Pulled", "")]),
    Case("nobody says whether it is ready", was_ready(), [event_saying("NodeNotReady", "Node is not ready")]),
    Case("node that answers again", was_ready(condition("Ready", "True")), [event_saying("NodeNotReady", "Node is not ready")]),
    Case(
        "not ready by itself, the node was silent before",
        pod("p", node="node-1", statuses=[container_status(ready=True), container_status("b", state=RUNS)]),
        [event_saying("NodeNotReady", "Node is not ready", seconds=900)]
    ),
    Case("lost before it had a node", pod("p", phase="Unknown")),
    Case(
        "ending because of a drain",
        pod(
            "p", node="node-1", deletionTimestamp=ago(-20),
            conditions=[condition("Ready", "True"), condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "drain")],
        )
    ),
    Case("ending for a minute more", pod("p", node="node-1", deletionTimestamp=ago(60))),
    Case("stuck without a node", pod("p", deletionTimestamp=ago(61))),
    *(
        Case(name, held)
        for name, held in (
            ("finalized without a node", held_by(FINALIZER)),
            ("finalized by two", held_by(FINALIZER, "b")),
            (
                "finalized, confirmed by its node",
                held_by(FINALIZER, node="node-1", deletionGracePeriodSeconds=0, statuses=[container_status(state=RUNS)]),
            ),
            ("finalized, its containers have ended", held_by(FINALIZER, node="node-1", statuses=[container_status(state=ended(0))])),
            (
                "finalized on a node that is left because of a taint",
                held_by(FINALIZER, node="node-1", deletionGracePeriodSeconds=0, conditions=[TAINTED]),
            ),
            (
                "finalized, and its node does not confirm its end",
                held_by(FINALIZER, node="node-1", deletionGracePeriodSeconds=30, statuses=[container_status(state=RUNS)]),
            ),
            ("its containers have ended, and its node holds it", held_by(node="node-1", statuses=[container_status(state=ended(0))])),
            (
                "one of its containers has ended",
                held_by(node="node-1", statuses=[container_status(state=ended(0)), container_status("b", state=RUNS)]),
            ),
        )
    ),
    Case("finalized a moment ago", held_by(FINALIZER, seconds=60, node="node-1", deletionGracePeriodSeconds=0)),
    Case(
        "stuck in a drain",
        pod("p", node="node-1", deletionTimestamp=ago(600), conditions=[condition("DisruptionTarget", "True", "", "drain")])
    ),
    Case("worst of two", with_containers("Running", RUNS, ended(1))),
    Case("first of two alike", with_containers("Running", ended(2), ended(1))),
    Case("ending", pod("p", node="node-1", deletionTimestamp=ago(-20))),
    Case("stuck", pod("p", node="node-1", deletionTimestamp=ago(600))),
]  # fmt: skip


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-pods", CASES)
