"""What is missing beside an object, who lacks a right, which fields are invalid, and a busy API server, from the API server's texts."""

import pytest

from grid.diagnosis.diagnosis import RefusalReason
from grid.diagnosis.refusals import explain_refusal


def refused(message: str) -> RefusalReason:
    reason = explain_refusal(message)
    assert reason is not None
    return reason


@pytest.mark.parametrize(
    ("message", "sentence", "step"),
    [
        (
            'pods "a" is forbidden: no PriorityClass with name batch was found',
            "The cluster has no priority class “batch”.",
            "It starts when an admin of the cluster creates it.",
        ),
        (
            'pods "a" is forbidden: error looking up service account shop/jobs: serviceaccount "jobs" not found',
            "The namespace shop has no service account “jobs”.",
            "It starts when an admin of the cluster creates it.",
        ),
        (
            'pods "a" is forbidden: service account shop/default was not found, retry after the service account is created',
            "The namespace shop has no service account “default”.",
            "It is tried again by itself; if that does not help, ask an admin of the cluster.",
        ),
        (
            'pods "a" is forbidden: pod rejected: RuntimeClass "gvisor" not found',
            "The cluster has no runtime class “gvisor”.",
            "It starts when an admin of the cluster creates it.",
        ),
        (
            'namespaces "shop" not found',
            "The namespace shop does not exist.",
            "It is tried again by itself; if that does not help, ask an admin of the cluster.",
        ),
    ],
)
def test_missing_object_is_named_and_may_appear(message: str, sentence: str, step: str) -> None:
    assert refused(message) == RefusalReason("missing", sentence, step, for_good=False)


def test_unknown_kind_needs_an_admin_and_may_appear() -> None:
    reason = refused("the server could not find the requested resource")
    assert (reason.code, reason.for_good) == ("unknown_kind", False)
    assert reason.next_step == "Ask an admin of the cluster: its Kubernetes is too old, or an extension is missing."


@pytest.mark.parametrize(
    ("message", "code", "sentence"),
    [
        ("Too many requests, please try again later.", "throttled", "The cluster's API server has too many requests."),
        (
            'pods "a" is forbidden: not yet ready to handle request',
            "busy",
            "The cluster's API server is still starting.",
        ),
        (
            "etcdserver: mvcc: database space exceeded",
            "busy",
            "The cluster's own database (etcd) is full, so it stores nothing new.",
        ),
        (
            "etcdserver: request timed out",
            "busy",
            "The cluster's own database (etcd) did not take it: request timed out.",
        ),
    ],
)
def test_busy_api_server_is_tried_again(message: str, code: str, sentence: str) -> None:
    reason = refused(message)
    assert (reason.code, reason.sentence, reason.for_good) == (code, sentence, False)
    assert "tried again by itself" in reason.next_step


@pytest.mark.parametrize(
    ("message", "code", "sentence", "actor"),
    [
        (
            (
                'configmaps "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set '
                "finalizers on: , <nil>"
            ),
            "rights",
            "Compute Grid may not say which object owns it",
            "deploy/access.yaml",
        ),
        (
            'pods "a" is forbidden: cannot set an ownerRef on a resource you can\'t delete: , <nil>',
            "rights",
            "(OwnerReferencesPermissionEnforcement) wants the right to delete it and to set finalizers of its owner.",
            "deploy/access.yaml",
        ),
        (
            'pods "a" is forbidden: node "n1" can not create pods that reference a service account',
            "rights",
            "Compute Grid uses the credentials of the node n1, which may not do this.",
            "Ask an admin",
        ),
        (
            'pods "a" is forbidden: pod node label selector conflicts with its namespace node label selector',
            "node_rule",
            "The namespace allows other nodes than those of the tier: pod node label selector conflicts with its namespace node label",
            "a tier of another node pool",
        ),
        (
            (
                'pods "a" is forbidden: pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace '
                "whitelist"
            ),
            "node_rule",
            "The namespace allows other nodes than those of the tier: pod tolerations (possibly merged",
            "a tier of another node pool",
        ),
        (
            'pods "a" is forbidden: unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable]',
            "pod_security",
            'No security context constraint of OpenShift allows it: [provider "anyuid": Forbidden: not usable].',
            "an admin of the cluster",
        ),
        (
            'ConfigMap "a" is invalid: []: Too long: may not be more than 1048576 bytes',
            "too_large",
            "It is larger than the cluster's API server takes.",
            "Shorten its script",
        ),
        ("Request entity too large: limit is 3145728", "too_large", "It is larger than the cluster's API", "Shorten"),
        (
            "etcdserver: request is too large",
            "too_large",
            "It is larger than the cluster's API server takes.",
            "Shorten",
        ),
    ],
)
def test_final_refusals_say_who_changes_what(message: str, code: str, sentence: str, actor: str) -> None:
    reason = refused(message)
    assert (reason.code, reason.for_good) == (code, True)
    assert sentence in reason.sentence
    assert actor in reason.next_step


@pytest.mark.parametrize(
    ("message", "problems", "actor"),
    [
        (
            'Pod "a" is invalid: spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
            'Pod invalid: spec.containers[0].resources.limits[nvidia.com/gpu] is "500m": must be an integer.',
            "Choose another tier",
        ),
        (
            (
                'Deployment.apps "a" is invalid: [spec.template.spec.containers[0].name: Required value, '
                "spec.template.spec.containers[0].image: Required value]"
            ),
            "Deployment invalid: spec.template.spec.containers[0].name is missing; spec.template.spec.containers[0].image is missing.",
            "Choose another environment",
        ),
        (
            'Pod "a" is invalid: spec.containers[0].env[0].name: Invalid value: "1=2": must be a name',
            'Pod invalid: spec.containers[0].env[0].name is "1=2": must be a name.',
            "Correct the environment variables",
        ),
        (
            'PersistentVolumeClaim "a" is invalid: spec.resources[storage]: Required value',
            "PersistentVolumeClaim invalid: spec.resources[storage] is missing.",
            "the storage of executions",
        ),
        (
            'Pod "a" is invalid: [spec.a: Duplicate value: "x", spec.b: Not found: "y", spec.c: Forbidden: not here, spec.d: Too many: 9]',
            'spec.a repeats "x"; spec.b names "y", which does not exist; spec.c is not allowed here: not here; 1 more.',
            "this release of Compute Grid",
        ),
        ('Pod "a" is invalid: something else', "Pod invalid: something else.", "this release of Compute Grid"),
        (
            'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.x"',
            'The cluster cannot read its Pod: strict decoding error: unknown field "spec.x".',
            "this release of Compute Grid",
        ),
        (
            "Pod in version \"v1\" cannot be handled as a Pod: quantities must match the regular expression '^x$'",
            "The cluster cannot read its Pod: quantities must match the regular expression '^x$'.",
            "Choose another tier",
        ),
    ],
)
def test_invalid_fields_are_named_with_their_owner(message: str, problems: str, actor: str) -> None:
    reason = refused(message)
    assert (reason.code, reason.for_good) == ("invalid", True)
    assert problems in reason.sentence
    assert actor in reason.next_step


def test_long_value_of_a_field_leaves_room_for_why() -> None:
    reason = refused(
        f'Pod "a" is invalid: metadata.name: Invalid value: "{"n" * 500}": must be no more than 253 characters'
    )
    assert reason.sentence.endswith("n…" + 224 * "n" + '": must be no more than 253 characters.')


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('Error creating: Pod "a" is invalid: spec.containers[0].image: Required value', "invalid"),
        ('Error creating: pods "a" is forbidden: no PriorityClass with name batch was found', "missing"),
        ('Error creating: namespaces "shop" not found', "missing"),
        ('Error creating: Internal error occurred: failed calling webhook "x.example.com": EOF', "webhook_down"),
    ],
)
def test_event_of_a_controller_is_read_like_an_answer(message: str, code: str) -> None:
    """The ReplicaSet controller puts words before what it was answered (pkg/controller/controller_utils.go)."""
    assert refused(message).code == code
