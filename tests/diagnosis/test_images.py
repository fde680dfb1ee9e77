"""What a person is told about an image that cannot be pulled, message by message of containerd, cri-o and the kubelet."""

import pytest

from grid.diagnosis.images import explain_pull
from grid.kube.objects import ContainerStatus, Event
from tests.diagnosis.situations import Case, assert_told_as_stored, event_saying, on_a_node
from tests.support.builders import container_status, decode, event

CONTAINERD = (
    'failed to pull and unpack image "registry.example/lab:4": failed to resolve reference "registry.example/lab:4": '
)
ASKED = 'failed to do request: Head "https://registry.example/v2/lab/manifests/4": '
CRIO = "reading manifest 4 in registry.example/lab: "
PINGED = 'pinging container registry registry.example: Get "https://registry.example/v2/": '

EXPIRED = "x509: certificate has expired or is not yet valid"
TLS = "does not trust the registry's TLS certificate"

MESSAGES = [
    ("containerd knows none", "rpc error: code = NotFound desc = " + CONTAINERD + "registry.example/lab:4: not found"),
    ("cri-o knows none", CRIO + "manifest unknown"),
    ("no such repository", CRIO + "name unknown: no such repository"),
    ("repository gone", "repository does not exist"),
    ("the embedded cluster has none", 'image "lab:4" is not in the catalogue of this cluster, which has: compute-grid/test:1'),
    (
        "private or missing",
        CONTAINERD + "pull access denied, repository does not exist or may require authorization: server message: "
        "insufficient_scope: authorization failed",
    ),
    ("no credentials", CONTAINERD + "unexpected status from HEAD request to https://registry.example/v2/lab: 401 Unauthorized"),
    ("token refused", CONTAINERD + "failed to authorize: failed to fetch anonymous token: 403 Forbidden"),
    ("cri-o without credentials", CRIO + "unauthorized: authentication required"),
    ("cri-o denied", CRIO + "requested access to the resource is denied"),
    ("a certificate of its own", ASKED + "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
    ("a certificate out of its time", PINGED + EXPIRED),
    ("an expired certificate", PINGED + f"{EXPIRED}: current time 2026-03-04T09:00:00Z is after 2026-03-01T00:00:00Z"),
    ("a certificate of tomorrow", PINGED + f"{EXPIRED}: current time 2026-03-04T09:00:00Z is before 2026-03-05T00:00:00Z"),
    *(
        (f"another host's certificate, {kind}", ASKED + "tls: failed to verify certificate: x509: " + text)
        for kind, text in (
            ("named", "certificate is valid for other.example, not registry.example"),
            ("unnamed", "certificate is not valid for any names, but wanted to match registry.example"),
            ("by address", "cannot validate certificate for 10.0.0.9 because it doesn't contain any IP SANs"),
        )
    ),
    ("plain HTTP", ASKED + "http: server gave HTTP response to HTTPS client"),
    (
        "Docker Hub's limit",
        CONTAINERD + "unexpected status code 429 Too Many Requests - Server message: toomanyrequests: You have reached your "
        "unauthenticated pull rate limit.",
    ),
    ("cri-o's words for the limit", CRIO + "toomanyrequests: You have reached your pull rate limit."),
    ("no such host", ASKED + "dial tcp: lookup registry.example on 10.96.0.10:53: no such host"),
    ("DNS out of order", PINGED + "dial tcp: lookup registry.example: Temporary failure in name resolution"),
    ("DNS does not answer", ASKED + "dial tcp: lookup registry.example on 10.96.0.10:53: read udp 10.1.1.1:53: i/o timeout"),
    ("other architecture", "rpc error: code = NotFound desc = " + CONTAINERD + "no match for platform in manifest: not found"),
    (
        "cri-o: other architecture",
        'choosing image instance: no image found in image index for architecture "arm64", variant "v8", OS "linux"',
    ),
    ("no answer", ASKED + "dial tcp 10.0.0.9:443: i/o timeout"),
    ("TLS without an answer", ASKED + "net/http: TLS handshake timeout"),
    ("too slow", "rpc error: code = DeadlineExceeded desc = context deadline exceeded"),
    ("nobody listens", ASKED + "dial tcp 10.0.0.9:443: connect: connection refused"),
    ("cri-o: no way there", PINGED + "dial tcp 10.0.0.9:443: connect: no route to host"),
    ("cut off", CONTAINERD + "read tcp 10.1.1.1:3->10.0.0.9:443: read: connection reset by peer"),
    ("registry in trouble", CONTAINERD + "unexpected status from HEAD request: 503 Service Unavailable"),
    ("disk full", 'failed to extract layer sha256:404d: write /var/lib/containerd/layer: no space left on device: unknown'),
    ("many at once", "pull QPS exceeded"),
    ("words of nobody", "the moon is in the wrong phase"),
]  # fmt: skip
CASES = [
    *(Case(name, on_a_node({"waiting": {"reason": "ErrImagePull", "message": text}})) for name, text in MESSAGES),
    Case(
        "details in an event only",
        on_a_node({"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "lab:4"'}}),
        [
            event_saying("Failed", 'Failed to pull image "lab:4": not found', seconds=1),
            event_saying("Failed", "Error: ErrImagePull"),
        ],
    ),
    Case(
        "no details left",
        on_a_node({"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "lab:4"'}}),
        [event_saying("Failed", "Error: ErrImagePull")],
    ),
    Case(
        "image unnamed",
        on_a_node(
            {
                "waiting": {
                    "reason": "InvalidImageName",
                    "message": 'couldn\'t parse image name "lab:": invalid reference format',
                }
            }
        ),
    ),
    Case(
        "never pulled",
        on_a_node(
            {
                "waiting": {
                    "reason": "ErrImageNeverPull",
                    "message": 'Container image "lab:4" is not present with pull policy of Never',
                }
            }
        ),
    ),
    Case(
        "image broken on the node",
        on_a_node({"waiting": {"reason": "ImageInspectError"}}),
        [
            event_saying("InspectFailed", "Failed to inspect image", seconds=9),
            event_saying("Pulled", "of another container"),
        ],
    ),
    Case(
        "unsigned",
        on_a_node({"waiting": {"reason": "SignatureValidationFailed", "message": "image pull failed for lab:4"}}),
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
