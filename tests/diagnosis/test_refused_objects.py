"""What is missing beside an object, who lacks a right, which fields are invalid, and a busy server: recorded and generated texts."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from grid.diagnosis.diagnosis import RefusalReason
from grid.diagnosis.refusals import explain_refusal
from grid.diagnosis.shortages import NamespaceLimits, PodNeeds, refusal
from grid.kube.limits import LimitRange, ResourceQuota
from tests.diagnosis.recorded_timelines import FOLDER
from tests.support.builders import decode
from tests.support.golden import assert_golden


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
        f'Pod "a" is invalid: metadata.name: Invalid value: "{"n" * 300}": must be no more than 253 characters'
    )
    assert reason.sentence.endswith("…: must be no more than 253 characters.")


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


def recorded(*codes: int, verb: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name of each recorded request (of that verb, when given) with such an answer, and the message."""
    for line in (FOLDER / "api" / "exchanges.jsonl").read_text().splitlines():
        exchange = json.loads(line)
        body = exchange["response"].get("body")
        if verb in ("", exchange["request"]["method"]) and isinstance(body, dict) and body.get("code") in codes:
            yield exchange["name"], body.get("message", "")


def answer(name: str, message: str) -> str:
    reason = explain_refusal(message)
    words = f"{reason.code}: {reason.sentence} {reason.next_step}" if reason else "(shown as it is)"
    return f"# {name}\n> {message}\n{words}"


def test_forbidden_answers_are_explained_as_stored() -> None:
    blocks = [answer(name, message) for name, message in recorded(403)]
    assert len(blocks) == 30
    assert_golden("words-of-recorded-refusals", "\n".join(blocks), ending="txt")


def test_answers_to_invalid_objects_are_explained_as_stored() -> None:
    blocks = [answer(name, message) for name, message in recorded(400, 404, 413, 422, 429, 500, verb="POST")]
    assert len(blocks) > 50
    assert_golden("words-of-recorded-invalid-objects", "\n".join(blocks), ending="txt")


def test_conflicts_and_expired_reads_are_no_refusal() -> None:
    others = [message for code in (409, 410) for _, message in recorded(code)]
    assert len(others) > 5
    assert [message for message in others if explain_refusal(message)] == []


Amounts = dict[str, int]
COMPUTE = ("cpu", "memory")
RESOURCES = (
    "pods", "count/pods", "cpu", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "requests.nvidia.com/gpu",
)  # fmt: skip


@dataclass
class Namespace:
    """Quotas as their hard limits and what is used, the most that a container may ask for, and pods that somebody wants to launch. All
    amounts are whole: cores, bytes, GPUs."""

    quotas: list[tuple[Amounts, Amounts]]
    most: Amounts
    pods: list[tuple[Amounts, Amounts, int]]

    def limits(self) -> NamespaceLimits:
        quotas = [
            {"metadata": {"name": f"q{place}"}, "status": {"hard": texts(hard), "used": texts(used)}}
            for place, (hard, used) in enumerate(self.quotas)
        ]
        item: dict[str, Any] = {"type": "Container", "max": texts(self.most)}
        range_ = {"metadata": {"name": "r"}, "spec": {"limits": [item]}}
        return NamespaceLimits(
            tuple(decode(each_quota, ResourceQuota) for each_quota in quotas), (decode(range_, LimitRange),)
        )

    def needs(self) -> list[PodNeeds]:
        return [PodNeeds("T", texts(requests), texts(limits), count) for requests, limits, count in self.pods]


def texts(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def usage(requests: Amounts, limits: Amounts) -> Amounts:
    amounts = {"pods": 1, "count/pods": 1}
    for name, amount in requests.items():
        amounts[f"requests.{name}"] = amount
        if name in COMPUTE:
            amounts[name] = amount
    return amounts | {f"limits.{name}": amount for name, amount in limits.items()}


def is_refused(namespace: Namespace, *, is_empty: bool) -> bool:
    """Admit all pods, one after the other, as the API server does; `is_empty` with nothing else in the namespace."""
    taken = [dict.fromkeys(used, 0) if is_empty else dict(used) for _, used in namespace.quotas]
    for requests, limits, count in namespace.pods:
        if any(limits.get(name, requests.get(name, 0)) > most for name, most in namespace.most.items()):
            return True
        for (hard, _), used in zip(namespace.quotas, taken, strict=True):
            each = usage(requests, limits)
            if any(name not in each and name.rpartition(".")[2] in COMPUTE for name in hard):
                return True  # it must say it
            for name, most in hard.items():
                if each.get(name) and used.get(name, 0) + each[name] * count > most:
                    return True
                used[name] = used.get(name, 0) + each.get(name, 0) * count
    return False


def make_namespace(seed: int) -> Namespace:
    chance = random.Random(seed)
    quotas = []
    for _ in range(chance.randint(0, 3)):
        hard = {name: chance.randint(1, 12) for name in chance.sample(RESOURCES, chance.randint(1, 3))}
        quotas.append((hard, {name: chance.randint(0, most) for name, most in hard.items()}))
    most = {name: chance.randint(4, 9) for name in COMPUTE if chance.random() < 0.3}
    pods = []
    for _ in range(chance.choice([1, 1, 2])):
        requests = {name: chance.randint(1, 5) for name in COMPUTE}
        limits = {name: amount + chance.randint(0, 2) for name, amount in requests.items() if chance.random() < 0.9}
        if chance.random() < 0.3:
            requests["nvidia.com/gpu"] = limits["nvidia.com/gpu"] = chance.randint(1, 3)
        pods.append((requests, limits, chance.choice([1, 1, 3])))
    return Namespace(quotas, most, pods)


def test_prediction_before_launch_matches_admission() -> None:
    for seed in range(200):
        _check_decision(seed)


def _check_decision(seed: int) -> None:
    namespace = make_namespace(seed)
    refused = refusal(namespace.needs(), namespace.limits())
    decided = is_refused(namespace, is_empty=False), is_refused(namespace, is_empty=True)
    assert (refused is not None, refused is not None and refused.for_good) == decided, f"{refused} {namespace}"


def test_refused_pod_waits_only_where_something_may_end() -> None:
    for seed in range(200):
        _check_wait(seed)


def _check_wait(seed: int) -> None:
    """The API server names only the resources of which too little is left."""
    namespace = make_namespace(seed)
    requests, limits, _ = namespace.pods[0]
    each = usage(requests, limits)
    for hard, used in namespace.quotas:
        short = [name for name in hard if each.get(name, 0) + used[name] > hard[name] and each.get(name)]
        if not short:
            continue
        parts = [",".join(f"{name}={of[name]}" for name in short) for of in (each, used, hard)]
        message = f"exceeded quota: q, requested: {parts[0]}, used: {parts[1]}, limited: {parts[2]}"
        reason = explain_refusal(f'pods "a" is forbidden: {message}')
        assert reason is not None
        assert reason.for_good == any(each[name] > hard[name] for name in short), reason


def test_the_namespaces_differ_enough() -> None:
    each = [make_namespace(seed) for seed in range(200)]
    decided = {(is_refused(namespace, is_empty=False), is_refused(namespace, is_empty=True)) for namespace in each}
    assert decided == {(False, False), (True, False), (True, True)}
