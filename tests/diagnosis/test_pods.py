"""What a person is told about a pod that has a node or has ended, case by case."""

from typing import Any

import pytest

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


LOST = ("node_lost", "node-1 no longer answers")
RUNNING = ("running", "Running.")
TAINTED = condition("DisruptionTarget", "True", "DeletionByTaintManager", "taint")
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
        "evicted", "ran short of disk and evicted this: it used 5Gi and requests 1Gi.",
    ),
    Case(
        "evicted for process ids",
        finished("Failed", reason="Evicted", message="The node was low on resource: pids. "), "evicted", "ran short of process ids",
    ),
    Case("evicted without a word", finished("Failed", reason="Evicted"), "evicted", "ran short of memory or disk"),
    Case(
        "shared memory is full",
        finished("Failed", reason="Evicted", message='Usage of EmptyDir volume "shared-memory" exceeds the limit "1Gi". '),
        "storage_limit", "more shared memory (/dev/shm) than its tier allows",
    ),
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
            ("a volume is full", 'Usage of EmptyDir volume "local" exceeds the limit "10Gi". '),
        )
    ),
    Case("node lost", finished("Failed", reason="NodeLost"), *LOST),
    Case("unknown phase", finished("Unknown"), *LOST),
    Case(
        "collected with its node",
        finished("Failed", conditions=[condition("DisruptionTarget", "True", "DeletionByPodGC", "node gone")]),
        *LOST,
    ),
    Case(
        "spared",
        finished("Failed", conditions=[condition("DisruptionTarget", "False", "DeletionByPodGC"), condition("Ready", "True")]),
        "failed", "does not say why",
    ),
    Case(
        "drained",
        finished("Failed", conditions=[condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "drain")]),
        "disrupted", "evicted this",
    ),
    Case("refused", finished("Failed", reason="OutOfcpu"), "refused_by_node", "rejected"),
    Case("failed with odd words", finished("Failed", reason="Odd", message="unheard of"), "failed", "does not say why"),
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
        "ending", "time to close its files",
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
    Case("lost before it had a node", pod("p", phase="Unknown"), "node_lost", "(unknown) no longer answers"),
    Case(
        "ending because of a drain",
        pod(
            "p", node="node-1", deletionTimestamp=ago(-20),
            conditions=[condition("Ready", "True"), condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "drain")],
        ),
        "ending", "time to close",
    ),
    Case("ending for a minute more", pod("p", node="node-1", deletionTimestamp=ago(60)), "ending", "time to close"),
    Case("stuck without a node", pod("p", deletionTimestamp=ago(61)), "stuck_ending", "61 seconds ago, but node (none)"),
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
