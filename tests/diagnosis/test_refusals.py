"""Why the API server refused an object, from its own texts: quotas, limit ranges, webhooks and policies."""

import pytest

from grid.diagnosis.diagnosis import RefusalReason
from grid.diagnosis.refusals import explain_refusal

QUOTA = (
    'pods "job-1" is forbidden: exceeded quota: team, requested: pods=1,requests.cpu=4, used: pods=10,requests.cpu=13, '
    "limited: pods=10,requests.cpu=16"
)


@pytest.mark.parametrize(
    ("message", "code", "sentence"),
    [
        (
            QUOTA,
            "quota",
            (
                "The quota “team” of the namespace has too little left: 10 of 10 pods are in use and this takes 1 pod; 13 cores of "
                "16 cores (requests.cpu) are in use and this takes 4 cores (requests.cpu)."
            ),
        ),
        (
            'pods "a" is forbidden: failed quota: team: must specify limits.cpu,limits.memory',
            "quota",
            "The quota “team” of the namespace takes only pods that say their limits.cpu and limits.memory.",
        ),
        (
            'persistentvolumeclaims "a" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 4Gi',
            "limit_range",
            "A limit range of the namespace allows at most 1 GiB of storage for a volume claim, and the request is 4 GiB of storage.",
        ),
        (
            'pods "a" is forbidden: maximum memory usage per Container is much, but limit is more',
            "limit_range",
            "A limit range of the namespace allows at most much of memory for a container, and the limit is more of memory.",
        ),
        (
            'pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is 4Gi',
            "limit_range",
            "A limit range of the namespace allows at most 1 GiB of memory for a container, and the limit is 4 GiB of memory.",
        ),
        (
            (
                'pods "a" is forbidden: [minimum cpu usage per Pod is 2, but request is 1, maximum memory usage per Pod is 1Gi, '
                "but limit is 2Gi]"
            ),
            "limit_range",
            (
                "A limit range of the namespace allows at least 2 cores for a pod, and the request is 1 core. "
                "A limit range of the namespace allows at most 1 GiB of memory for a pod, and the limit is 2 GiB of memory."
            ),
        ),
        (
            'pods "a" is forbidden: cpu max limit to request ratio per Container is 1500m, but provided ratio is 4.000000',
            "limit_range",
            "A limit range of the namespace allows a limit of cpu of at most 1.5 times the request, and the tier's is 4 times.",
        ),
        (
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
            "pod_security",
            "Pod security of the namespace (restricted:latest) forbids it: runAsNonRoot != true.",
        ),
        (
            'admission webhook "images.example.com" denied the request: only images of our registry',
            "webhook",
            "The cluster's rule images.example.com forbids it: only images of our registry.",
        ),
    ],
)
def test_each_known_refusal_is_said_in_words(message: str, code: str, sentence: str) -> None:
    reason = explain_refusal(message)
    assert reason is not None
    assert (reason.code, reason.sentence) == (code, sentence)
    assert reason.next_step
    assert reason.for_good is not (code == "quota" and "exceeded" in message)


def test_an_unknown_refusal_is_left_to_its_own_words() -> None:
    assert explain_refusal("the moon is full") is None
    assert explain_refusal("") is None


GOLD = "gold.storageclass.storage.k8s.io"


def refused(message: str) -> RefusalReason:
    reason = explain_refusal(message)
    assert reason is not None
    return reason


def exceeded(name: str, *, asked: str, used: str, hard: str) -> RefusalReason:
    amounts = f"requested: {name}={asked}, used: {name}={used}, limited: {name}={hard}"
    return refused(f'pods "a" is forbidden: exceeded quota: team, {amounts}')


@pytest.mark.parametrize(
    ("name", "amounts", "words"),
    [
        (
            "requests.storage",
            ("10Gi", "95Gi", "100Gi"),
            "95 GiB of 100 GiB of storage are in use and this takes 10 GiB of storage",
        ),
        (
            f"{GOLD}/requests.storage",
            ("10Gi", "95Gi", "100Gi"),
            "95 GiB of 100 GiB of the storage class gold are in use and this takes 10 GiB of the storage class gold",
        ),
        (
            f"{GOLD}/persistentvolumeclaims",
            ("1", "3", "3"),
            "3 of 3 volume claims of the storage class gold are in use and this takes 1 volume claim of the storage class gold",
        ),
        ("persistentvolumeclaims", ("1", "5", "5"), "5 of 5 volume claims are in use and this takes 1 volume claim"),
        ("count/configmaps", ("1", "3", "3"), "3 of 3 ConfigMaps are in use and this takes 1 ConfigMap"),
        ("count/deployments.apps", ("1", "3", "3"), "3 of 3 Deployments are in use and this takes 1 Deployment"),
        (
            "count/widgets.example.com",
            ("1", "3", "3"),
            "3 of 3 widgets.example.com are in use and this takes 1 widgets.example.com",
        ),
        (
            "services.loadbalancers",
            ("1", "2", "2"),
            "2 of 2 Services of type LoadBalancer are in use and this takes 1 Service of type LoadBalancer",
        ),
        (
            "gpu.example.com.deviceclass.resource.k8s.io/devices",
            ("2", "7", "8"),
            "7 of 8 devices of the class gpu.example.com are in use and this takes 2 devices of the class gpu.example.com",
        ),
        (
            "requests.hugepages-2Mi",
            ("1Gi", "1Gi", "1Gi"),
            "1 GiB of 1 GiB (requests.hugepages-2Mi) are in use and this takes 1 GiB (requests.hugepages-2Mi)",
        ),
    ],
)
def test_quota_is_said_in_units_of_its_resource(name: str, amounts: tuple[str, str, str], words: str) -> None:
    asked, used, hard = amounts
    reason = exceeded(name, asked=asked, used=used, hard=hard)
    assert reason.sentence == f"The quota “team” of the namespace has too little left: {words}."
    assert not reason.for_good


@pytest.mark.parametrize(
    ("name", "freed_by"),
    [
        ("pods", "something else in the namespace ends"),
        ("requests.cpu", "something else in the namespace ends"),
        ("count/configmaps", "others of them in the namespace are deleted"),
        ("requests.storage", "a volume claim of the namespace is deleted"),
        (f"{GOLD}/persistentvolumeclaims", "a volume claim of the namespace is deleted"),
    ],
)
def test_next_step_says_what_frees_the_quota(name: str, freed_by: str) -> None:
    assert freed_by in exceeded(name, asked="1", used="3", hard="3").next_step


def test_tier_is_no_cure_for_storage_or_counts() -> None:
    assert "smaller tier" in exceeded("requests.cpu", asked="4", used="0", hard="3").next_step
    for name in ("requests.storage", "count/secrets"):
        reason = exceeded(name, asked="4", used="0", hard="3")
        assert (reason.next_step, reason.for_good) == ("Ask an admin of the cluster to raise the quota.", True)


@pytest.mark.parametrize(
    ("message", "sentence", "for_good"),
    [
        (
            'pods "a" is forbidden: status unknown for quota: team, resources: pods,requests.cpu',
            "The cluster has not yet counted what uses the quota “team” of the namespace.",
            False,
        ),
        (
            "Internal error occurred: resource quota evaluation timed out",
            "The cluster was too busy to count it against the namespace's quota.",
            False,
        ),
        (
            "insufficient quota to match these scopes: [{PriorityClass In [high]}]",
            "The cluster takes this only where a quota allows it, and none of the namespace allows: [{PriorityClass In [high]}].",
            True,
        ),
        (
            'pods "a" is forbidden: insufficient quota to consume: requests.nvidia.com/gpu',
            "The cluster takes this only where a quota allows it, and none of the namespace allows: requests.nvidia.com/gpu.",
            True,
        ),
    ],
)
def test_quota_that_cannot_count_it_is_said(message: str, sentence: str, for_good: bool) -> None:
    reason = refused(message)
    assert (reason.code, reason.sentence, reason.for_good) == ("quota", sentence, for_good)


@pytest.mark.parametrize(
    ("objections", "sentences"),
    [
        (
            "[maximum cpu usage per Container is 2, but limit is 4, maximum cpu usage per Container is 2, but limit is 4]",
            ["allows at most 2 cores for a container, and the limit is 4 cores."],
        ),
        (
            (
                "[cpu max limit to request ratio per Pod is 2, but provided ratio is 4.000000, "
                "minimum memory usage per Pod is 1Gi, but request is 512Mi]"
            ),
            [
                "allows a limit of cpu of at most 2 times the request, and the tier's is 4 times.",
                "allows at least 1 GiB of memory for a pod, and the request is 512 MiB of memory.",
            ],
        ),
        (
            "[maximum cpu usage per Pod is 3.  No limit is specified, minimum memory usage per Pod is 1Gi.  No request is specified]",
            [
                "allows at most 3 cores for a pod, and it says no limit.",
                "allows at least 1 GiB of memory for a pod, and it says no request.",
            ],
        ),
        (
            "memory max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            ["allows a limit of memory of at most 2 times the request, and the tier says no limit."],
        ),
        (
            "Maximum cpu usage per Pod is 3, but limit is 4.",
            ["allows at most 3 cores for a pod, and the limit is 4 cores."],
        ),
    ],
)
def test_limit_ranges_say_all_that_they_object_to(objections: str, sentences: list[str]) -> None:
    reason = refused(f'pods "a" is forbidden: {objections}')
    assert reason.sentence == " ".join(f"A limit range of the namespace {sentence}" for sentence in sentences)
    assert reason.next_step.startswith("Choose another tier")


def test_claim_beyond_limit_range_needs_an_admin() -> None:
    reason = refused(
        'persistentvolumeclaims "a" is forbidden: minimum storage usage per PersistentVolumeClaim is 5Gi, but request is 1Gi'
    )
    assert reason.next_step == "Ask an admin of the cluster to change it."


def test_unread_objection_of_a_limit_range_keeps_its_words() -> None:
    reason = refused('pods "a" is forbidden: maximum cpu usage per Pod is above what it may be')
    assert (
        reason.sentence
        == "A limit range of the namespace forbids it: maximum cpu usage per Pod is above what it may be"
    )


CALLED = 'Internal error occurred: failed calling webhook "images.example.com": failed to call webhook: '
POSTED = CALLED + 'Post "https://hooks.shop.svc:443/check?timeout=10s": '
VALIDATING = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'labels' with binding 'all' denied request: "
MUTATING = "policy 'sidecars' with binding 'all' denied request: "


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
