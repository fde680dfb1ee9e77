"""What a person is told about an image that cannot be pulled, message by message of containerd, cri-o and the kubelet."""

import pytest

from grid.diagnosis.images import explain_pull
from grid.kube.objects import ContainerStatus, Event
from tests.diagnosis.situations import Case, assert_explained, assert_told_as_stored, on_a_node, said
from tests.support.builders import container_status, decode, event

CONTAINERD = (
    'failed to pull and unpack image "registry.example/lab:4": failed to resolve reference "registry.example/lab:4": '
)
ASKED = 'failed to do request: Head "https://registry.example/v2/lab/manifests/4": '
CRIO = "reading manifest 4 in registry.example/lab: "
PINGED = 'pinging container registry registry.example: Get "https://registry.example/v2/": '

EXPIRED = "x509: certificate has expired or is not yet valid"
NONE = "there is no such image"
ACCESS = "the registry refuses access, or there is no such image."
TLS = "does not trust the registry's TLS certificate"
RATE = "rate limit is reached"
HOST = "cannot resolve the registry's host name"
PLATFORM = "no build of it for the node's architecture"
TIMEOUT = "does not answer in time"
CONNECTION = "cannot connect to the registry"

MESSAGES = [
    ("containerd knows none", "rpc error: code = NotFound desc = " + CONTAINERD + "registry.example/lab:4: not found", NONE),
    ("cri-o knows none", CRIO + "manifest unknown", NONE),
    ("no such repository", CRIO + "name unknown: no such repository", NONE),
    ("repository gone", "repository does not exist", NONE),
    ("the embedded cluster has none", 'image "lab:4" is not in the catalogue of this cluster, which has: compute-grid/test:1', NONE),
    (
        "private or missing",
        CONTAINERD + "pull access denied, repository does not exist or may require authorization: server message: "
        "insufficient_scope: authorization failed",
        ACCESS,
    ),
    ("no credentials", CONTAINERD + "unexpected status from HEAD request to https://registry.example/v2/lab: 401 Unauthorized", ACCESS),
    ("token refused", CONTAINERD + "failed to authorize: failed to fetch anonymous token: 403 Forbidden", ACCESS),
    ("cri-o without credentials", CRIO + "unauthorized: authentication required", ACCESS),
    ("cri-o denied", CRIO + "requested access to the resource is denied", ACCESS),
    ("a certificate of its own", ASKED + "tls: failed to verify certificate: x509: certificate signed by unknown authority", TLS),
    ("a certificate out of its time", PINGED + EXPIRED, "TLS certificate has expired or is not valid yet."),
    (
        "an expired certificate", PINGED + f"{EXPIRED}: current time 2026-03-04T09:00:00Z is after 2026-03-01T00:00:00Z",
        "TLS certificate has expired.",
    ),
    (
        "a certificate of tomorrow", PINGED + f"{EXPIRED}: current time 2026-03-04T09:00:00Z is before 2026-03-05T00:00:00Z",
        "TLS certificate is not valid yet by the node's clock",
    ),
    *(
        (f"another host's certificate, {kind}", ASKED + "tls: failed to verify certificate: x509: " + text, "is for another host name")
        for kind, text in (
            ("named", "certificate is valid for other.example, not registry.example"),
            ("unnamed", "certificate is not valid for any names, but wanted to match registry.example"),
            ("by address", "cannot validate certificate for 10.0.0.9 because it doesn't contain any IP SANs"),
        )
    ),
    ("plain HTTP", ASKED + "http: server gave HTTP response to HTTPS client", "speaks plain HTTP"),
    (
        "Docker Hub's limit",
        CONTAINERD + "unexpected status code 429 Too Many Requests - Server message: toomanyrequests: You have reached your "
        "unauthenticated pull rate limit.",
        RATE,
    ),
    ("cri-o's words for the limit", CRIO + "toomanyrequests: You have reached your pull rate limit.", RATE),
    ("no such host", ASKED + "dial tcp: lookup registry.example on 10.96.0.10:53: no such host", HOST),
    ("DNS out of order", PINGED + "dial tcp: lookup registry.example: Temporary failure in name resolution", HOST),
    ("DNS does not answer", ASKED + "dial tcp: lookup registry.example on 10.96.0.10:53: read udp 10.1.1.1:53: i/o timeout", HOST),
    ("other architecture", "rpc error: code = NotFound desc = " + CONTAINERD + "no match for platform in manifest: not found", PLATFORM),
    (
        "cri-o: other architecture",
        'choosing image instance: no image found in image index for architecture "arm64", variant "v8", OS "linux"',
        PLATFORM,
    ),
    ("no answer", ASKED + "dial tcp 10.0.0.9:443: i/o timeout", TIMEOUT),
    ("TLS without an answer", ASKED + "net/http: TLS handshake timeout", TIMEOUT),
    ("too slow", "rpc error: code = DeadlineExceeded desc = context deadline exceeded", TIMEOUT),
    ("nobody listens", ASKED + "dial tcp 10.0.0.9:443: connect: connection refused", CONNECTION),
    ("cri-o: no way there", PINGED + "dial tcp 10.0.0.9:443: connect: no route to host", CONNECTION),
    ("cut off", CONTAINERD + "read tcp 10.1.1.1:3->10.0.0.9:443: read: connection reset by peer", CONNECTION),
    ("registry in trouble", CONTAINERD + "unexpected status from HEAD request: 503 Service Unavailable", "an error of its own"),
    (
        "disk full",
        'failed to extract layer sha256:404d: write /var/lib/containerd/layer: no space left on device: unknown',
        "the node's disk is full",
    ),
    ("many at once", "pull QPS exceeded", "the node limits its pulls"),
    ("words of nobody", "the moon is in the wrong phase", "The image lab:4 cannot be pulled."),
]  # fmt: skip
CASES = [
    *(
        Case(name, on_a_node({"waiting": {"reason": "ErrImagePull", "message": text}}), "image", gist)
        for name, text, gist in MESSAGES
    ),
    Case(
        "details in an event only",
        on_a_node({"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "lab:4"'}}),
        "image",
        NONE,
        [said("Failed", 'Failed to pull image "lab:4": not found', seconds=1), said("Failed", "Error: ErrImagePull")],
    ),
    Case(
        "no details left",
        on_a_node({"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "lab:4"'}}),
        "image",
        "The image lab:4 cannot be pulled.",
        [said("Failed", "Error: ErrImagePull")],
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
        "image",
        "its name is not valid",
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
        "image",
        "its pull policy forbids",
    ),
    Case(
        "image broken on the node",
        on_a_node({"waiting": {"reason": "ImageInspectError"}}),
        "image",
        "The node's container runtime cannot inspect the image lab:4.",
        [said("InspectFailed", "Failed to inspect image", seconds=9), said("Pulled", "of another container")],
    ),
    Case(
        "unsigned",
        on_a_node({"waiting": {"reason": "SignatureValidationFailed", "message": "image pull failed for lab:4"}}),
        "image",
        "its signature is not valid",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_image_that_cannot_be_pulled_is_explained(case: Case) -> None:
    assert_explained(case)


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-images", CASES)


@pytest.mark.parametrize("image", ["denied/forbidden:404", "registry/not found/tls:x509", "toomanyrequests:429"])
def test_the_name_of_an_image_says_nothing_about_its_failure(image: str) -> None:
    state = {"waiting": {"reason": "ErrImagePull", "message": f'failed to pull "{image}": i/o timeout'}}
    status = decode(container_status(state=state), ContainerStatus)
    assert "does not answer in time" in explain_pull(image, status, []).sentence


def test_the_failure_of_another_container_is_left_to_it() -> None:
    status = decode(container_status("run", state={"waiting": {"reason": "ImagePullBackOff"}}), ContainerStatus)
    own = event("own", reason="Failed", message='Failed to pull image "lab:4": i/o timeout')
    other = event("other", reason="Failed", message='Failed to pull image "x": not found')
    own["involvedObject"]["fieldPath"] = "spec.containers{run}"
    other["involvedObject"]["fieldPath"] = "spec.initContainers{first}"
    found = explain_pull("lab:4", status, [decode(one, Event) for one in (own, other)])
    assert "does not answer in time" in found.sentence
