"""Quotas of storage, of classes and of counts of objects, and limit ranges with several objections, from the API server's texts."""

import pytest

from grid.diagnosis.diagnosis import RefusalReason
from grid.diagnosis.refusals import explain_refusal

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


@pytest.mark.parametrize(
    ("lacks", "sentence", "step"),
    [
        (
            "limits.cpu for: istio-proxy,istio-init; limits.memory for: istio-proxy,istio-init",
            "wants limits.cpu and limits.memory of each container; none in istio-proxy and istio-init.",
            "what adds such containers, like a service mesh, has to set them",
        ),
        ("limits.cpu for: istio-proxy,run", "takes only pods that say their limits.cpu.", "complete the tier"),
        ("limits.cpu,limits.memory", "takes only pods that say their limits.cpu and limits.memory.", "complete the tier"),
    ],
)  # fmt: skip
def test_quota_names_injected_containers_but_not_our_own(lacks: str, sentence: str, step: str) -> None:
    reason = refused(f'pods "a" is forbidden: failed quota: team: must specify {lacks}')
    assert reason.sentence == f"The quota “team” of the namespace {sentence}"
    assert step in reason.next_step
