"""What a person is told about a container, case by case."""

from typing import Any

from tests.diagnosis.situations import Case, ago, assert_told_as_stored, ended, event_saying, on_a_node
from tests.support.builders import container_status, pod


def waits(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return on_a_node({"waiting": {"reason": reason, "message": message}}, **more)


def runs(since: float, **more: Any) -> dict[str, Any]:
    return on_a_node({"running": {"startedAt": ago(since)}}, **more)


def of_container(name: str, reason: str, message: str) -> dict[str, Any]:
    """An event about one container of the pod."""
    event = event_saying(reason, message)
    event["involvedObject"]["fieldPath"] = f"spec.containers{{{name}}}"
    return event


CASES = [
    Case("creating", waits("ContainerCreating")),
    Case("pulling", waits("ContainerCreating"), [event_saying("Pulling", 'Pulling image "lab:4"', seconds=40)]),
    Case(
        "files on another node",
        waits("ContainerCreating"),
        [event_saying("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node')]
    ),
    Case(
        "files not attached",
        waits("ContainerCreating"),
        [event_saying("FailedMount", "timed out waiting for the condition")]
    ),
    Case(
        "another volume after the download",
        waits("ContainerCreating"),
        [event_saying("Pulling", "", seconds=60), event_saying("FailedMount", "timed out", seconds=1)]
    ),
    *(
        Case(
            f"sandbox at last, {reason}",
            waits("ContainerCreating"),
            [event_saying("FailedCreatePodSandBox", "cni", seconds=9), event_saying(reason, message)]
        )
        for reason, message in (
            ("Pulled", 'Container image "lab:4" already present on machine'),
            ("Created", "Created container: run"),
            ("Started", "Started container run"),
        )
    ),
    Case(
        "another container is downloaded",
        waits("ContainerCreating"),
        [of_container("b", "Pulling", 'Pulling image "big:1"')]
    ),
    Case(
        "image of the previous run",
        waits("ContainerCreating", restarts=1, lastState=ended(1)),
        [event_saying("Started", "Started container run", seconds=60)]
    ),
    Case(
        "download of a first step",
        pod(
            "p", node="node-1", spec={"initContainers": [{"name": "first", "image": "step:1"}]},
            statuses=[container_status(state={"waiting": {"reason": "PodInitializing"}})],
            status={"initContainerStatuses": [container_status("first", state={"waiting": {"reason": "PodInitializing"}})]},
        ),
        [event_saying("Pulling", 'Pulling image "step:1"', seconds=3)]
    ),
    Case(
        "mounted at last",
        waits("ContainerCreating"),
        [event_saying("FailedMount", "timed out", seconds=60), event_saying("Pulling", "", seconds=1)]
    ),
    Case("sandbox", waits("ContainerCreating"), [event_saying("FailedCreatePodSandBox", "cni")]),
    Case("crash loop", waits("CrashLoopBackOff", "back-off 40s", restarts=4, lastState=ended(1))),
    Case(
        "crash loop with last words",
        waits("CrashLoopBackOff", "back-off 40s", restarts=4, lastState=ended(134, message="free(): invalid pointer"))
    ),
    Case("crash loop of unknown cause", waits("CrashLoopBackOff", restarts=4)),
    Case(
        "out of memory again and again",
        waits("CrashLoopBackOff", "back-off 20s", restarts=2, lastState=ended(137, "OOMKilled", message="killed"))
    ),
    Case("out of memory for good", on_a_node(ended(137, "OOMKilled"))),
    Case("out of memory, running again", runs(4, ready=True, restarts=1, lastState=ended(137, "OOMKilled"))),
    Case("crashed, running again", runs(4, ready=True, restarts=1, lastState=ended(139))),
    Case(
        "crashed almost ten minutes ago",
        runs(599, ready=True, restarts=1, lastState=ended(143, seconds=599, message="bye"))
    ),
    Case("crashed ten minutes ago", runs(600, ready=True, restarts=1, lastState=ended(139, seconds=600))),
    Case(
        "out of memory ten minutes ago",
        runs(600, ready=True, restarts=1, lastState=ended(137, "OOMKilled", seconds=600))
    ),
    Case(
        "crashed, starting again",
        runs(4, restarts=1, lastState=ended(1)),
        [event_saying("Unhealthy", "Readiness probe failed: connection refused")]
    ),
    Case("crashed ten minutes ago, starting again", runs(299, restarts=1, lastState=ended(1, seconds=600))),
    Case(
        "out of memory without a limit",
        pod("p", node="node-1", containers=[{"name": "run"}], statuses=[container_status(state=ended(137, "OOMKilled"))])
    ),
    Case(
        "out of the memory of its pod",
        pod(
            "p", node="node-1", containers=[{"name": "run"}], spec={"resources": {"limits": {"memory": "2Gi"}}},
            statuses=[container_status(state=ended(137, "OOMKilled"))],
        )
    ),
    Case(
        "a container that the pod does not name",
        pod("p", node="node-1", statuses=[container_status("other", state=ended(137, "OOMKilled"))])
    ),
    Case("starting", runs(5), [event_saying("Unhealthy", "Readiness probe failed: connection refused")]),
    Case("still starting", runs(299)),
    Case("slow", runs(300)),
    Case(
        "hanging",
        runs(900),
        [event_saying("Unhealthy", "Readiness probe failed: timeout"), event_saying("Pulled", "later")]
    ),
    Case("running", runs(900, ready=True)),
    Case("job done", on_a_node(ended(0, "Completed"))),
    Case("job failed", on_a_node(ended(3, message="no such column"))),
]  # fmt: skip


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-containers", CASES)
