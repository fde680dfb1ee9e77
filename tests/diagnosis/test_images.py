"""What a person is told about an image that cannot be pulled, message by message of containerd, cri-o and the kubelet."""

from typing import Any

import pytest

from grid.diagnosis.images import explain_pull
from grid.kube.objects import ContainerStatus, Event
from tests.diagnosis.rule_examples import EXAMPLES
from tests.diagnosis.situations import Case, assert_told_as_stored, event_saying, on_a_node
from tests.support.builders import container_status, decode, event

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


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return on_a_node({"waiting": {"reason": reason, "message": message}})


CASES = [
    *(
        Case(key, waits(REASONS.get(key, "ErrImagePull"), message))
        for key, (message, _) in EXAMPLES["images.PULL_FAILURES"].items()
    ),
    *(Case(name, waits("ErrImagePull", text)) for name, text in OTHER_WORDS),
    Case(
        "details in an event only",
        waits("ImagePullBackOff", 'Back-off pulling image "lab:4"'),
        [
            event_saying("Failed", 'Failed to pull image "lab:4": not found', seconds=1),
            event_saying("Failed", "Error: ErrImagePull"),
        ],
    ),
    Case(
        "no details left",
        waits("ImagePullBackOff", 'Back-off pulling image "lab:4"'),
        [event_saying("Failed", "Error: ErrImagePull")],
    ),
    Case(
        "image broken on the node",
        waits("ImageInspectError"),
        [
            event_saying("InspectFailed", "Failed to inspect image", seconds=9),
            event_saying("Pulled", "of another container"),
        ],
    ),
]


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-images", CASES)


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
