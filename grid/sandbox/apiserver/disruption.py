"""PodDisruptionBudgets: how many pods may be evicted now. Pure functions of a budget and the pods of its namespace."""

import math
from collections.abc import Callable, Sequence

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.pods import is_finished, is_ready
from grid.sandbox.apiserver.selectors import selects

ScaleOf = Callable[[Object], int | None]


def covers(budget: Object, pod: Object) -> bool:
    """An empty selector covers every pod of the namespace."""
    return selects(budget["spec"].get("selector"), pod["metadata"].get("labels"))


def budget_status(budget: Object, pods: Sequence[Object], scale_of: ScaleOf, now: str) -> Object:
    """The status that the budget should have. `scale_of` gives the wanted number of pods of a pod's controller."""
    spec, before = budget["spec"], budget.get("status") or {}
    covered = [pod for pod in pods if covers(budget, pod) and not is_finished(pod)]
    healthy = sum(1 for pod in covered if is_ready(pod) and "deletionTimestamp" not in pod["metadata"])
    expected, desired = _goal(spec, covered, scale_of)
    allowed = max(healthy - desired, 0) if expected else 0
    generation = budget["metadata"].get("generation", 1)
    return {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [_condition(before, allowed, generation, now)],
    }


def _goal(spec: Object, covered: Sequence[Object], scale_of: ScaleOf) -> tuple[int, int]:
    """Expected and desired number of pods."""
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most is None and isinstance(least, int):
        return len(covered), least
    expected = _expected(covered, scale_of)
    if most is not None:
        return expected, max(expected - _share(most, expected), 0)
    return expected, _share(least if least is not None else 1, expected)


def _expected(covered: Sequence[Object], scale_of: ScaleOf) -> int:
    """The sum of what the pods' controllers want; a pod without one counts for itself."""
    wanted: dict[str, int] = {}
    for pod in covered:
        owner = next((each for each in pod["metadata"].get("ownerReferences") or () if each.get("controller")), None)
        scale = scale_of(owner) if owner else None
        wanted[owner["uid"] if owner and scale is not None else pod["metadata"]["uid"]] = 1 if scale is None else scale
    return sum(wanted.values())


def _share(amount: int | str, total: int) -> int:
    if isinstance(amount, int):
        return amount
    return math.ceil(int(amount.removesuffix("%")) * total / 100)


def _condition(before: Object, allowed: int, generation: int, now: str) -> Object:
    status = "True" if allowed else "False"
    old: Object = next(iter(before.get("conditions") or ()), {})
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": old["lastTransitionTime"] if old.get("status") == status else now,
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }
