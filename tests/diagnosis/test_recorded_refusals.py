"""What is said of each refusal recorded from a real API server, and of generated quotas and limit ranges."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from grid.diagnosis.refusals import explain_refusal
from grid.diagnosis.shortages import NamespaceLimits, PodNeeds, refusal
from grid.kube.limits import LimitRange, ResourceQuota
from tests.diagnosis.recorded_timelines import FOLDER
from tests.support.builders import decode
from tests.support.golden import assert_golden


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
