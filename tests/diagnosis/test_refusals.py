"""Why the API server refused an object, from its own texts: read `tests/golden/words-of-refusals.txt` from top to bottom."""

import pytest

from grid.diagnosis.refusals import explain_refusal
from tests.diagnosis.rule_examples import EXAMPLES
from tests.support.golden import assert_golden

POD = 'pods "a" is forbidden: '
CALLED = 'Internal error occurred: failed calling webhook "images.example.com": failed to call webhook: '
POSTED = CALLED + 'Post "https://hooks.shop.svc:443/check?timeout=10s": '
VALIDATING = POD + "ValidatingAdmissionPolicy 'labels' with binding 'all' denied request: "
AWAITS = "failed to configure binding: paramKind kind `v1, Kind=Rules` not yet synced to use for admission"
TEMPLATE = "spec.template.spec.containers[0]"
GATEKEEPER = (
    'admission webhook "validation.gatekeeper.sh" denied the request: [allowed-repos] container <run> has an invalid image repo '
    "<docker.io/alice/exp:3>\n[container-limits] container <run> memory limit <512Gi> is higher than the maximum allowed of <256Gi>"
)
POD_SECURITY = (
    'pods "p" is forbidden: violates PodSecurity "baseline:v1.36": non-default capabilities (container "fuse" must not include '
    '"SYS_ADMIN" in securityContext.capabilities.add), hostPath volumes (volume "dev-fuse")'
)
WARDEN = (
    'admission webhook "warden-validating.common-webhooks.networking.gke.io" denied the request: GKE Warden rejected the request '
    'because it violates one or more constraints.\nViolations details: {"[denied by autogke-no-write-mode-hostpath]":["hostPath '
    'volume shm used in container run uses path /dev/shm which is not allowed in Autopilot."]}'
)
SIGSTORE = (
    'admission webhook "policy.sigstore.dev" denied the request: validation failed: failed policy: signed-by-ci: '
    "spec.containers[0].image\nlab@sha256:9f2c signature key validation failed for authority authority-0"
)
GOLD = "gold.storageclass.storage.k8s.io"

# The resource, what is asked for, what is in use, and how much there may be.
AMOUNTS = [
    "requests.storage 10Gi 95Gi 100Gi",
    f"{GOLD}/requests.storage 10Gi 95Gi 100Gi",
    f"{GOLD}/persistentvolumeclaims 1 3 3",
    "persistentvolumeclaims 1 5 5",
    "count/configmaps 1 3 3",
    "count/deployments.apps 1 3 3",
    "count/widgets.example.com 1 3 3",
    "services.loadbalancers 1 2 2",
    "gpu.example.com.deviceclass.resource.k8s.io/devices 2 7 8",
    "requests.hugepages-2Mi 1Gi 1Gi 1Gi",
    "pods 1 3 3",
    "requests.cpu 1 3 3",
    "requests.cpu 4 0 3",
    "requests.storage 4 0 3",
    "count/secrets 4 0 3",
]


def exceeded(name: str, asked: str, used: str, hard: str) -> str:
    return f"{POD}exceeded quota: team, requested: {name}={asked}, used: {name}={used}, limited: {name}={hard}"


LIMIT_RANGES = [
    "maximum memory usage per Container is much, but limit is more",
    "maximum memory usage per Container is 1Gi, but limit is 4Gi",
    "[minimum cpu usage per Pod is 2, but request is 1, maximum memory usage per Pod is 1Gi, but limit is 2Gi]",
    "cpu max limit to request ratio per Container is 1500m, but provided ratio is 4.000000",
    "[maximum cpu usage per Container is 2, but limit is 4, maximum cpu usage per Container is 2, but limit is 4]",
    "[cpu max limit to request ratio per Pod is 2, but provided ratio is 4.0, minimum memory usage per Pod is 1Gi, but request is 512Mi]",
    "[maximum cpu usage per Pod is 3.  No limit is specified, minimum memory usage per Pod is 1Gi.  No request is specified]",
    "memory max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
    "Maximum cpu usage per Pod is 3, but limit is 4.",
    "maximum cpu usage per Pod is above what it may be",
]
WEBHOOKS = [
    POSTED + "dial tcp 10.96.1.1:443: connect: connection refused",
    POSTED + "context deadline exceeded",
    POSTED + 'no endpoints available for service "hooks"',
    POSTED + 'service "hooks" not found',
    POSTED + "tls: failed to verify certificate: x509: certificate has expired",
    POSTED + "dial tcp: lookup hooks.shop.svc on 10.96.0.10:53: no such host",
    POSTED + "proxy error from 127.0.0.1:9345 while dialing",
    CALLED.replace("failed to call webhook: ", "received invalid webhook response: it is 7"),
    CALLED + "the server is currently unable to handle the request",
    POSTED + "the moon is full.",
    'Internal error occurred: failed calling webhook "images.example.com"; no further details available',
    'admission webhook "validation.gatekeeper.sh" denied the request: [repos] only images of our registry',
    'admission webhook "images.example.com" denied the request without explanation',
    POD + "Error contacting webhook: 503",
]
POLICIES = [
    VALIDATING + "failed expression: object.spec.replicas <= 5",
    "ValidatingAdmissionPolicy 'labels' denied request: say the team\nas a label",
    VALIDATING + "expression 'object.spec.x > 1' resulted in error: no such key: x",
    VALIDATING + AWAITS,
    f"policy 'sidecars' with binding 'all' denied request: {AWAITS}",
    POD + "image policy webook backend denied one or more images: lab:4 is not signed",
    POD + "one or more images rejected by webhook backend",
    POD + 'spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"',
]
OTHERS = [
    POD
    + "exceeded quota: team, requested: pods=1,requests.cpu=4, used: pods=10,requests.cpu=13, limited: pods=10,requests.cpu=16",
    POD + "failed quota: team: must specify limits.cpu,limits.memory",
    POD
    + "failed quota: team: must specify limits.cpu for: istio-proxy,istio-init; limits.memory for: istio-proxy,istio-init",
    POD + "failed quota: team: must specify limits.cpu for: istio-proxy,run",
    'admission webhook "policies" denied the request: container <run> memory limit <64Gi> is higher than the maximum allowed of <32Gi>',
    POD + "status unknown for quota: team, resources: pods,requests.cpu",
    "Internal error occurred: resource quota evaluation timed out",
    "insufficient quota to match these scopes: [{PriorityClass In [high]}]",
    POD + "insufficient quota to consume: requests.nvidia.com/gpu",
    'persistentvolumeclaims "a" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 4Gi',
    'persistentvolumeclaims "a" is forbidden: minimum storage usage per PersistentVolumeClaim is 5Gi, but request is 1Gi',
    POD + "service account shop/default was not found, retry after the service account is created",
    POD
    + "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
    POD + "cannot set an ownerRef on a resource you can't delete: , <nil>",
    POD + 'node "n1" can not create pods that reference a service account',
    POD + "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist",
    POD + 'unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable]',
    "Request entity too large: limit is 3145728",
    "etcdserver: request is too large",
    'Pod "a" is invalid: spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
    f'Deployment.apps "a" is invalid: [{TEMPLATE}.name: Required value, {TEMPLATE}.image: Required value]',
    'Pod "a" is invalid: spec.containers[0].env[0].name: Invalid value: "1=2": must be a name',
    'PersistentVolumeClaim "a" is invalid: spec.resources[storage]: Required value',
    'Pod "a" is invalid: [spec.a: Duplicate value: "x", spec.b: Not found: "y", spec.c: Forbidden: not here, spec.d: Too many: 9]',
    'Pod "a" is invalid: something else',
    "Pod in version \"v1\" cannot be handled as a Pod: quantities must match the regular expression '^x$'",
    f'Pod "a" is invalid: metadata.name: Invalid value: "{"n" * 500}": must be no more than 253 characters',
    *(GATEKEEPER, POD_SECURITY, WARDEN, SIGSTORE),
]


def test_refusals_are_said_as_stored() -> None:
    """The first are those of the examples of the rules."""
    examples = [message for message, _ in EXAMPLES["refusals.REFUSALS"].values()]
    quotas, ranges = [exceeded(*amounts.split()) for amounts in AMOUNTS], [POD + text for text in LIMIT_RANGES]
    blocks = []
    for message in [*examples, *quotas, *ranges, *WEBHOOKS, *POLICIES, *OTHERS]:
        reason = explain_refusal(message)
        assert reason is not None and reason.next_step, message
        lasting = "for good" if reason.for_good else "may pass"
        blocks += [f"> {' '.join(message.split())}", f"{reason.code} ({lasting}): {reason.sentence} {reason.next_step}"]
    assert_golden("words-of-refusals", "\n".join(blocks), ending="txt")


@pytest.mark.parametrize("message", ["the moon is full", ""])
def test_unknown_refusal_is_left_to_its_own_words(message: str) -> None:
    assert explain_refusal(message) is None


@pytest.mark.parametrize("rule", ["invalid", "priority-class", "namespace-missing", "webhook-down"])
def test_event_of_a_controller_is_read_like_an_answer(rule: str) -> None:
    """The ReplicaSet controller puts words before what it was answered (pkg/controller/controller_utils.go)."""
    message, _ = EXAMPLES["refusals.REFUSALS"][rule]
    assert explain_refusal(f"Error creating: {message}") == explain_refusal(message)
