"""Namespaces that refuse pods although there is room: each rule with the quota or limit range next to it that lets the pods pass."""

from dataclasses import replace
from typing import Any

import pytest

from grid.diagnosis.shortages import (
    ContainerNeeds,
    NamespaceLimits,
    PodNeeds,
    TierPromise,
    needed,
    phantoms,
    refusal as refusal_of,
    warnings,
)
from grid.kube.limits import LimitRange, ResourceQuota
from tests.support.builders import decode
from tests.support.golden import assert_golden

POD = PodNeeds("Large", {"cpu": "4", "memory": "16Gi"}, {"cpu": "8", "memory": "16Gi"})
NAME = "The quota “team” of the namespace"


def refusal(pods: list[PodNeeds], limits: NamespaceLimits) -> str:
    refused = refusal_of(pods, limits)
    return refused.sentence if refused else ""


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> NamespaceLimits:
    stored = {
        "metadata": {"name": "team"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used or {}},
    }
    return NamespaceLimits(quotas=(decode(stored, ResourceQuota),))


def limit_range(**item: Any) -> NamespaceLimits:
    stored = {"metadata": {"name": "sizes"}, "spec": {"limits": [{"type": "Container", **item}]}}
    return NamespaceLimits(ranges=(decode(stored, LimitRange),))


def test_all_pods_of_a_launch_count_together() -> None:
    workers = PodNeeds("Small", {"cpu": "1"}, {"cpu": "1"}, count=4)
    assert refusal([POD, workers], quota({"pods": "5"})) == ""
    assert "has 4 of 4 pods left, and this takes 5 pods" in refusal([POD, workers], quota({"pods": "4"}))
    assert "this takes 8 cores (requests.cpu)" in refusal([POD, workers], quota({"requests.cpu": "7"}))


def test_refusal_that_may_free_up_differs_from_permanent_one() -> None:
    def for_good(limits: NamespaceLimits) -> bool:
        refused = refusal_of([POD], limits)
        assert refused is not None
        return refused.for_good

    assert not for_good(quota({"pods": "3"}, {"pods": "3"}))
    assert for_good(quota({"pods": "0"}))
    assert for_good(quota({"requests.cpu": "3"}))
    assert for_good(limit_range(max={"cpu": "4"}))


def test_quota_refuses_unstated_amount_unless_there_is_a_default() -> None:
    strict = quota({"limits.ephemeral-storage": "100Gi"})
    assert refusal([POD], strict)
    defaulted = NamespaceLimits(strict.quotas, limit_range(default={"ephemeral-storage": "1Gi"}).ranges)
    assert refusal([POD], defaulted) == ""


@pytest.mark.parametrize(
    ("scopes", "counts"), [([], True), (["NotTerminating"], True), (["Terminating"], False), (["BestEffort"], False)]
)
def test_only_quotas_that_count_our_pods_are_compared(scopes: list[str], counts: bool) -> None:
    assert bool(refusal([POD], quota({"pods": "0"}, scopes=scopes))) is counts
    priority = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}
    assert refusal([POD], quota({"pods": "0"}, scopeSelector=priority)) == ""


QUOTAS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"pods": "10"}, {"pods": "10"}),
    ({"pods": "10"}, {"pods": "9"}),
    ({"count/pods": "1"}, {"count/pods": "1"}),
    ({"requests.cpu": "16"}, {"requests.cpu": "13"}),
    ({"cpu": "16"}, {"cpu": "12500m"}),
    ({"limits.memory": "64Gi"}, {"limits.memory": "50Gi"}),
    ({"cpu": "1"}, {}),
    ({"secrets": "1"}, {"secrets": "1"}),
    ({"limits.ephemeral-storage": "100Gi"}, {}),
    ({"pods": "many"}, {}),
]
RANGES: list[dict[str, Any]] = [
    {"max": {"cpu": "4"}},
    {"type": "Pod", "max": {"memory": "8Gi"}},
    {"min": {"cpu": "6"}},
    {"maxLimitRequestRatio": {"cpu": "1500m"}},
    {"maxLimitRequestRatio": {"cpu": "2"}},
    {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
]


def test_quotas_and_limit_ranges_refuse_as_stored() -> None:
    answers = [(f"hard {hard}, used {used}", refusal([POD], quota(hard, used))) for hard, used in QUOTAS]
    answers += [(f"{item}", refusal([POD], limit_range(**item))) for item in RANGES]
    blocks = [f"# {limits}\n{sentence or '(takes it)'}" for limits, sentence in answers]
    assert_golden("words-of-shortages", "\n".join(blocks), ending="txt")


def test_nearly_used_up_quota_is_a_warning_only() -> None:
    nearly = quota({"pods": "10"}, {"pods": "9"})
    assert warnings([POD], nearly) == [f"{NAME} has 1 of 10 pods left: enough for this, and not for another like it."]
    assert warnings([POD], quota({"pods": "10"}, {"pods": "8"})) == []
    assert warnings([POD], quota({"pods": "10"}, {"pods": "10"})) == []


def test_promises_are_compared_with_the_empty_namespace() -> None:
    few = quota({"pods": "10", "requests.cpu": "20"}, {"pods": "10"})
    fine, many = TierPromise("large", POD, 5), TierPromise("huge", POD, 6)
    broken = phantoms([fine, many], 25, few)
    assert [(phantom.tier, phantom.sentence) for phantom in broken] == [
        ("", "One user may hold 25 slots, but the quota “team” of the namespace allows 10 pods in all."),
        (
            "huge",
            "It may run 6 at once, but the quota “team” of the namespace has 20 cores (requests.cpu) in all, enough for 5.",
        ),
    ]
    assert phantoms([fine], 10, few) == []
    assert [phantom.tier for phantom in phantoms([TierPromise("large", POD)], 1, limit_range(max={"cpu": "4"}))] == [
        "large"
    ]


def test_sidecar_is_judged_by_container_and_with_its_pod() -> None:
    front = ContainerNeeds("nginx in front of it", {"cpu": "10m", "memory": "32Mi"}, {"cpu": "1", "memory": "128Mi"})
    pod = replace(POD, sidecars=(front,))
    assert needed(pod)["requests.cpu"] == 4010
    assert needed(pod)["limits.cpu"] == 9000
    assert needed(pod)["requests.memory"] == 16 * 2**30 + 32 * 2**20

    def refused_by(**item: Any) -> str:
        made = decode({"metadata": {"name": "team"}, "spec": {"limits": [item]}}, LimitRange)
        refused = refusal_of([pod], NamespaceLimits(ranges=(made,)))
        return refused.sentence if refused else ""

    assert not refused_by(type="Container", max={"cpu": "8"})
    assert "Large takes up to 9 cores" in refused_by(type="Pod", max={"cpu": "8"})
    assert "nginx in front of it requests 0.01 cores" in refused_by(type="Container", min={"cpu": "50m"})
