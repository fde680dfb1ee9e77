"""What a person is told about a container, case by case."""

from typing import Any

import pytest

from tests.diagnosis.situations import Case, ago, assert_explained, assert_told_as_stored, ended, on_a_node, said
from tests.support.builders import container_status, pod


def waits(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return on_a_node({"waiting": {"reason": reason, "message": message}}, **more)


def runs(since: float, **more: Any) -> dict[str, Any]:
    return on_a_node({"running": {"startedAt": ago(since)}}, **more)


def of_container(name: str, reason: str, message: str) -> dict[str, Any]:
    """An event about one container of the pod."""
    event = said(reason, message)
    event["involvedObject"]["fieldPath"] = f"spec.containers{{{name}}}"
    return event


CASES = [
    Case("creating", waits("ContainerCreating"), "preparing", "volumes, network, image"),
    Case(
        "pulling",
        waits("ContainerCreating"), "pulling", "downloads the image lab:4, for 40 seconds so far",
        [said("Pulling", 'Pulling image "lab:4"', seconds=40)],
    ),
    Case(
        "files on another node",
        waits("ContainerCreating"), "volume_mount", "is still attached to another node",
        [said("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node')],
    ),
    Case(
        "files not attached",
        waits("ContainerCreating"), "volume_mount", "cannot be attached",
        [said("FailedMount", "timed out waiting for the condition")],
    ),
    Case(
        "another volume after the download",
        waits("ContainerCreating"), "volume_mount", "cannot be attached",
        [said("Pulling", "", seconds=60), said("FailedMount", "timed out", seconds=1)],
    ),
    *(
        Case(
            f"sandbox at last, {reason}",
            waits("ContainerCreating"), "preparing", words,
            [said("FailedCreatePodSandBox", "cni", seconds=9), said(reason, message)],
        )
        for reason, message, words in (
            ("Pulled", 'Container image "lab:4" already present on machine', "The image is on the node"),
            ("Created", "Created container: run", "is created and is being started"),
            ("Started", "Started container run", "was started; the node has not reported yet"),
        )
    ),
    Case(
        "another container is downloaded",
        waits("ContainerCreating"), "preparing", "the pod's volumes and network are ready",
        [of_container("b", "Pulling", 'Pulling image "big:1"')],
    ),
    Case(
        "image of the previous run",
        waits("ContainerCreating", restarts=1, lastState=ended(1)), "preparing", "volumes and network are ready",
        [said("Started", "Started container run", seconds=60)],
    ),
    Case("nothing known", pod("p", node="node-1", statuses=[{"name": "run"}]), "preparing", "volumes, network, image"),
    Case(
        "download of a first step",
        pod(
            "p", node="node-1", spec={"initContainers": [{"name": "first", "image": "step:1"}]},
            statuses=[container_status(state={"waiting": {"reason": "PodInitializing"}})],
            status={"initContainerStatuses": [container_status("first", state={"waiting": {"reason": "PodInitializing"}})]},
        ),
        "pulling", "downloads the image step:1",
        [said("Pulling", 'Pulling image "step:1"', seconds=3)],
    ),
    Case(
        "mounted at last",
        waits("ContainerCreating"), "pulling", "downloads",
        [said("FailedMount", "timed out", seconds=60), said("Pulling", "", seconds=1)],
    ),
    Case(
        "sandbox",
        waits("ContainerCreating"), "sandbox", "network or sandbox",
        [said("FailedCreatePodSandBox", "cni")],
    ),
    Case(
        "crash loop",
        waits("CrashLoopBackOff", "back-off 40s", restarts=4, lastState=ended(1)),
        "crash_loop", "keeps crashing (4 restarts): exit code 1.",
    ),
    Case(
        "crash loop with last words",
        waits("CrashLoopBackOff", "back-off 40s", restarts=4, lastState=ended(134, message="free(): invalid pointer")),
        "crash_loop", "exit code 134, it aborted.",
    ),
    Case("crash loop of unknown cause", waits("CrashLoopBackOff", restarts=4), "crash_loop", "(4 restarts). It is"),
    Case(
        "out of memory again and again",
        waits("CrashLoopBackOff", "back-off 20s", restarts=2, lastState=ended(137, "OOMKilled", message="killed")),
        "out_of_memory", "more memory than its limit of 4 GiB",
    ),
    Case(
        "out of memory for good",
        on_a_node(ended(137, "OOMKilled")), "out_of_memory", "its limit of 4 GiB and was ended.",
    ),
    Case(
        "out of memory, running again",
        runs(4, ready=True, restarts=1, lastState=ended(137, "OOMKilled")),
        "out_of_memory", "It was restarted.",
    ),
    Case(
        "crashed, running again",
        runs(4, ready=True, restarts=1, lastState=ended(139)), "restarted", "segmentation fault",
    ),
    Case(
        "crashed almost ten minutes ago",
        runs(599, ready=True, restarts=1, lastState=ended(143, seconds=599, message="bye")),
        "restarted", "9 minutes ago: exit code 143, something asked it to end (SIGTERM).",
    ),
    Case(
        "crashed ten minutes ago", runs(600, ready=True, restarts=1, lastState=ended(139, seconds=600)), "running", "Running.",
    ),
    Case(
        "out of memory ten minutes ago",
        runs(600, ready=True, restarts=1, lastState=ended(137, "OOMKilled", seconds=600)), "running", "Running.",
    ),
    Case(
        "crashed, starting again",
        runs(4, restarts=1, lastState=ended(1)),
        "restarted", "Program restarted 5 seconds ago: exit code 1. It does not answer yet.",
        [said("Unhealthy", "Readiness probe failed: connection refused")],
    ),
    Case(
        "crashed ten minutes ago, starting again", runs(299, restarts=1, lastState=ended(1, seconds=600)), "starting", "is starting",
    ),
    Case(
        "out of memory without a limit",
        pod("p", node="node-1", containers=[{"name": "run"}], statuses=[container_status(state=ended(137, "OOMKilled"))]),
        "out_of_memory", "The node ran out of memory and ended the program, which has no memory limit.",
    ),
    Case(
        "out of the memory of its pod",
        pod(
            "p", node="node-1", containers=[{"name": "run"}], spec={"resources": {"limits": {"memory": "2Gi"}}},
            statuses=[container_status(state=ended(137, "OOMKilled"))],
        ),
        "out_of_memory", "more memory than its limit of 2 GiB and was ended.",
    ),
    Case(
        "a container that the pod does not name",
        pod("p", node="node-1", statuses=[container_status("other", state=ended(137, "OOMKilled"))]),
        "out_of_memory", "more memory than its limit and was ended.",
    ),
    Case(
        "crashed long ago",
        runs(7000, ready=True, restarts=1, lastState=ended(139, seconds=7000)), "running", "Running.",
    ),
    Case(
        "starting",
        runs(5), "starting", "does not answer yet",
        [said("Unhealthy", "Readiness probe failed: connection refused")],
    ),
    Case("still starting", runs(299), "starting", "does not answer yet"),
    Case("slow", runs(300), "not_answering", "Running for 5 minutes without answering"),
    Case(
        "hanging",
        runs(900), "not_answering", "Running for 15 minutes without answering",
        [said("Unhealthy", "Readiness probe failed: timeout"), said("Pulled", "later")],
    ),
    Case("running", runs(900, ready=True), "running", "Running."),
    Case("job done", on_a_node(ended(0, "Completed")), "completed", "without an error"),
    Case("job failed", on_a_node(ended(3, message="no such column")), "exit_code", "exit code 3"),
    Case("job failed without a reason", on_a_node(ended(3, "")), "exit_code", "exit code 3."),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_container_is_explained_in_words(case: Case) -> None:
    assert_explained(case)


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-containers", CASES)
