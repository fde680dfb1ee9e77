"""What webhooks and policies say to an object: denials, and that they could not be asked, from the API server's texts."""

import pytest

from grid.diagnosis.diagnosis import RefusalReason
from grid.diagnosis.refusals import explain_refusal

CALLED = 'Internal error occurred: failed calling webhook "images.example.com": failed to call webhook: '
POSTED = CALLED + 'Post "https://hooks.shop.svc:443/check?timeout=10s": '
VALIDATING = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'labels' with binding 'all' denied request: "
MUTATING = "policy 'sidecars' with binding 'all' denied request: "


def refused(message: str) -> RefusalReason:
    reason = explain_refusal(message)
    assert reason is not None
    return reason


@pytest.mark.parametrize(
    ("message", "trouble"),
    [
        (
            POSTED + "dial tcp 10.96.1.1:443: connect: connection refused",
            "it refuses the connection: it is probably not running",
        ),
        (POSTED + "context deadline exceeded", "it does not answer in time"),
        (POSTED + 'no endpoints available for service "hooks"', "no pod behind its Service “hooks” is ready"),
        (POSTED + 'service "hooks" not found', "its Service “hooks” is missing"),
        (POSTED + "tls: failed to verify certificate: x509: certificate has expired", "its certificate is not trusted"),
        (POSTED + "dial tcp: lookup hooks.shop.svc on 10.96.0.10:53: no such host", "it cannot be reached"),
        (
            POSTED + "proxy error from 127.0.0.1:9345 while dialing",
            "the API server has no connection to the cluster's network",
        ),
        (
            CALLED.replace("failed to call webhook: ", "received invalid webhook response: it is 7"),
            "its answer is not understood",
        ),
        (CALLED + "the server is currently unable to handle the request", "it answers with an error"),
        (POSTED + "the moon is full.", "the moon is full"),
        (
            'Internal error occurred: failed calling webhook "images.example.com"; no further details available',
            "the API server does not say why",
        ),
    ],
)
def test_silent_webhook_is_no_denial_and_tried_again(message: str, trouble: str) -> None:
    reason = refused(message)
    assert reason.code == "webhook_down"
    assert (
        reason.sentence
        == f"The cluster's webhook images.example.com has to allow it first, and could not be asked: {trouble}."
    )
    assert (
        reason.next_step
        == "It is tried again by itself; if that does not help, ask an admin of the cluster to repair it."
    )
    assert not reason.for_good


def test_silent_image_policy_is_tried_again() -> None:
    denied = 'pods "a" is forbidden: Post "https://images.example.com/policy": dial tcp 10.0.0.9:443: connect: connection refused'
    reason = refused(denied)
    assert (reason.code, reason.for_good) == ("webhook_down", False)
    assert "image policy has to allow it first, and could not be asked: it refuses the connection" in reason.sentence
    assert refused('pods "a" is forbidden: Error contacting webhook: 503').sentence.endswith("could not be asked: 503.")


@pytest.mark.parametrize(
    ("message", "code", "sentence"),
    [
        (
            'admission webhook "validation.gatekeeper.sh" denied the request: [repos] only images of our registry',
            "webhook",
            "The cluster's rule validation.gatekeeper.sh forbids it: [repos] only images of our registry.",
        ),
        (
            'admission webhook "images.example.com" denied the request without explanation',
            "webhook",
            "The cluster's rule images.example.com forbids it.",
        ),
        (
            VALIDATING + "failed expression: object.spec.replicas <= 5",
            "policy",
            "The cluster's policy labels forbids it: failed expression: object.spec.replicas <= 5.",
        ),
        (
            "ValidatingAdmissionPolicy 'labels' denied request: say the team\nas a label",
            "policy",
            "The cluster's policy labels forbids it: say the team as a label.",
        ),
        (
            VALIDATING + "expression 'object.spec.x > 1' resulted in error: no such key: x",
            "policy_broken",
            "The cluster's policy labels has an error, so it lets nothing through: no such key: x.",
        ),
        (
            MUTATING + "invalid JSONPatch value type: string",
            "policy_broken",
            "The cluster's policy sidecars has to change it first, and failed: invalid JSONPatch value type: string.",
        ),
        (
            'pods "a" is forbidden: image policy webook backend denied one or more images: lab:4 is not signed',
            "image_policy",
            "The cluster's image policy forbids its image: lab:4 is not signed.",
        ),
        (
            'pods "a" is forbidden: one or more images rejected by webhook backend',
            "image_policy",
            "The cluster's image policy forbids its image.",
        ),
        (
            'pods "a" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"',
            "image_policy",
            "The cluster takes only pods that pull their image at each start (AlwaysPullImages).",
        ),
    ],
)
def test_denials_say_who_forbids_and_are_final(message: str, code: str, sentence: str) -> None:
    reason = refused(message)
    assert (reason.code, reason.sentence, reason.for_good) == (code, sentence, True)
    assert "an admin of the cluster" in reason.next_step


@pytest.mark.parametrize("policy", [VALIDATING, MUTATING])
def test_policy_that_awaits_its_parameters_is_tried_again(policy: str) -> None:
    reason = refused(
        policy + "failed to configure binding: paramKind kind `v1, Kind=Rules` not yet synced to use for admission"
    )
    assert (reason.code, reason.for_good) == ("policy_broken", False)
    assert "has an error, so it lets nothing through: paramKind kind" in reason.sentence


def test_webhook_that_cannot_be_tried_forbids_nothing() -> None:
    reason = refused('admission webhook "images.example.com" does not support dry run')
    assert (reason.code, reason.next_step) == ("no_dry_run", "You can launch it anyway.")
