"""What a person is told about a container, its image and its volumes, case by case."""

from typing import Any

import pytest

from grid.diagnosis.images import explain_pull
from grid.kube.objects import ContainerStatus, Event
from tests.diagnosis.rule_examples import EXAMPLES
from tests.diagnosis.situations import Case, ago, assert_told_as_stored, ended, event_saying, on_a_node
from tests.support.builders import container_status, decode, event, pod


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


CONTAINERD = (
    'failed to pull and unpack image "registry.example/lab:4": failed to resolve reference "registry.example/lab:4": '
)
ASKED = 'failed to do request: Head "https://registry.example/v2/lab/manifests/4": '
CRIO = "reading manifest 4 in registry.example/lab: "
PINGED = 'pinging container registry registry.example: Get "https://registry.example/v2/": '

# What else is said of the same failures as in the examples of their rules.
OTHER_WORDS = [
    ("containerd knows none", "rpc error: code = NotFound desc = " + CONTAINERD + "registry.example/lab:4: not found"),
    ("no such repository", CRIO + "name unknown: no such repository"),
    ("the embedded cluster has none", 'image "lab:4" is not in the catalogue of this cluster, which has: compute-grid/test:1'),
    ("no credentials", CONTAINERD + "unexpected status from HEAD request to https://registry.example/v2/lab: 401 Unauthorized"),
    ("a certificate for no name", ASKED + "x509: certificate is not valid for any names, but wanted to match registry.example"),
    ("a certificate for no address", ASKED + "x509: cannot validate certificate for 10.0.0.9 because it doesn't contain any IP SANs"),
    ("cri-o's words for the limit", CRIO + "toomanyrequests: You have reached your pull rate limit."),
    ("DNS out of order", PINGED + "dial tcp: lookup registry.example: Temporary failure in name resolution"),
    ("cri-o: other architecture", 'choosing image instance: no image found in image index for architecture "arm64", OS "linux"'),
    ("no answer", ASKED + "dial tcp 10.0.0.9:443: i/o timeout"),
    ("cri-o: no way there", PINGED + "dial tcp 10.0.0.9:443: connect: no route to host"),
    ("cut off", CONTAINERD + "read tcp 10.1.1.1:3->10.0.0.9:443: read: connection reset by peer"),
    ("words of nobody", "the moon is in the wrong phase"),
]  # fmt: skip
REASONS = {
    "never-pulled": "ErrImageNeverPull",
    "invalid-name": "InvalidImageName",
    "signature": "SignatureValidationFailed",
}


def waits_for_image(reason: str, message: str = "") -> dict[str, Any]:
    return on_a_node({"waiting": {"reason": reason, "message": message}})


IMAGE_CASES = [
    *(
        Case(key, waits_for_image(REASONS.get(key, "ErrImagePull"), message))
        for key, (message, _) in EXAMPLES["images.PULL_FAILURES"].items()
    ),
    *(Case(name, waits_for_image("ErrImagePull", text)) for name, text in OTHER_WORDS),
    Case(
        "details in an event only",
        waits_for_image("ImagePullBackOff", 'Back-off pulling image "lab:4"'),
        [
            event_saying("Failed", 'Failed to pull image "lab:4": not found', seconds=1),
            event_saying("Failed", "Error: ErrImagePull"),
        ],
    ),
    Case(
        "no details left",
        waits_for_image("ImagePullBackOff", 'Back-off pulling image "lab:4"'),
        [event_saying("Failed", "Error: ErrImagePull")],
    ),
    Case(
        "image broken on the node",
        waits_for_image("ImageInspectError"),
        [
            event_saying("InspectFailed", "Failed to inspect image", seconds=9),
            event_saying("Pulled", "of another container"),
        ],
    ),
]


@pytest.mark.parametrize("image", ["denied/forbidden:404", "registry/not found/tls:x509", "toomanyrequests:429"])
def test_image_name_says_nothing_about_its_failure(image: str) -> None:
    state = {"waiting": {"reason": "ErrImagePull", "message": f'failed to pull "{image}": i/o timeout'}}
    status = decode(container_status(state=state), ContainerStatus)
    assert "does not answer in time" in explain_pull(image, status, []).sentence


def test_the_failure_of_another_container_is_left_to_it() -> None:
    status = decode(container_status("run", state={"waiting": {"reason": "ImagePullBackOff"}}), ContainerStatus)
    own = event("own", reason="Failed", message='Failed to pull image "lab:4": i/o timeout')
    other = event("other", reason="Failed", message='Failed to pull image "x": not found')
    own["involvedObject"]["fieldPath"] = "spec.containers{run}"
    other["involvedObject"]["fieldPath"] = "spec.initContainers{first}"
    diagnosis = explain_pull("lab:4", status, [decode(raw, Event) for raw in (own, other)])
    assert "does not answer in time" in diagnosis.sentence


def config(message: str) -> dict[str, object]:
    return on_a_node({"waiting": {"reason": "CreateContainerConfigError", "message": message}})


def mount(name: str, message: str, reason: str = "FailedMount") -> Case:
    return Case(name, on_a_node({"waiting": {"reason": "ContainerCreating"}}), [event_saying(reason, message)])


def of_rules(table: str, reason: str = "FailedMount") -> list[Case]:
    return [mount(key, message, reason) for key, (message, _) in EXAMPLES[f"mounts.{table}"].items()]


MOUNT_CASES = [
    Case("ConfigMap missing", config('configmap "settings" not found')),
    Case("Secret missing", config('secret "token" not found')),
    Case("key of a ConfigMap missing", config("couldn't find key a.b in ConfigMap compute-grid/settings")),
    Case("runs as root", config("container has runAsNonRoot and image will run as root (pod: ...)")),
    Case("cache not there yet", config("failed to sync secret cache: timed out waiting for the condition")),
    mount(
        "cache of a volume not there yet",
        'MountVolume.SetUp failed for volume "files" : failed to sync configmap cache: timed out waiting for the condition',
    ),
    *of_rules("MISSING"),
    mount(
        "key of a volume missing",
        'MountVolume.SetUp failed for volume "certs" : references non-existent secret key: ca.crt',
    ),
    mount(
        "project's files not mounted",
        "Unable to attach or mount volumes: unmounted volumes=[project], unattached volumes=[project home]: timed out",
    ),
    mount("home not mounted", "Unable to attach or mount volumes: unmounted volumes=[home project]: timed out"),
    mount(
        "other volume not attached", 'AttachVolume.Attach failed for volume "scratch" : rpc error', "FailedAttachVolume"
    ),
    *of_rules("WHY_NOT_MOUNTED"),
    *of_rules("ATTACHED", "FailedAttachVolume"),
    mount(
        "project in use",
        'Multi-Attach error for volume "project" Volume is already used by pod(s) other',
        "FailedAttachVolume",
    ),
    mount(
        "volume in use by several pods",
        'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) a, b and 1 pod(s) in different namespaces',
        "FailedAttachVolume",
    ),
]


@pytest.mark.parametrize(
    ("stored", "cases"),
    [("words-of-containers", CASES), ("words-of-images", IMAGE_CASES), ("words-of-mounts", MOUNT_CASES)],
)
def test_the_whole_words_are_as_stored(stored: str, cases: list[Case]) -> None:
    assert_told_as_stored(stored, cases)
