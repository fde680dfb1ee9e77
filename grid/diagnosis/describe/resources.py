"""The resources that a pod requests, as the scheduler counts them."""

from collections.abc import Mapping
from typing import Any

from grid.diagnosis.describe.values import Amount

Amounts = dict[str, Amount]


def pod_total(pod: Mapping[str, Any], part: str) -> Amounts:
    """Return a pod's total `requests` or `limits`: containers and sidecars together, or the largest init container if that is more.

    https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
    """
    spec = pod["spec"]
    total: Amounts = {}
    for container in spec.get("containers", ()):
        total = _sum(total, _of(container, part))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers", ()):
        wanted = _of(container, part)
        if container.get("restartPolicy") == "Always":
            total, sidecars = _sum(total, wanted), _sum(sidecars, wanted)
            wanted = sidecars
        else:
            wanted = _sum(wanted, sidecars)
        peak = _larger(peak, wanted)
    total = _larger(total, peak)
    overhead = {name: Amount.parse(text) for name, text in spec.get("overhead", {}).items()}
    if part == "limits":
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    return _sum(total, overhead)


def _of(container: Mapping[str, Any], part: str) -> Amounts:
    listed = (container.get("resources") or {}).get(part) or {}
    return {name: Amount.parse(text) for name, text in listed.items()}


def _sum(amounts: Amounts, other: Amounts) -> Amounts:
    return {**amounts, **{name: amounts.get(name, Amount()) + amount for name, amount in other.items()}}


def _larger(amounts: Amounts, other: Amounts) -> Amounts:
    return {
        **amounts,
        **{name: amounts[name].max(amount) if name in amounts else amount for name, amount in other.items()},
    }
