"""Requests of pods and allocatable of nodes with every resource by its own name, as the scheduler compares them; pure.

CPU is in thousandths of a core, everything else in whole units. A pod counts as one of the resource "pods".
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from grid.kube.objects import Pod
from grid.quantity import format_bytes, format_cores, millicores, whole
from grid.wording import listed, plural

ResourceAmounts = Mapping[str, int]
PODS = "pods"
_BYTES = {"memory": "memory", "ephemeral-storage": "disk", "storage": "storage"}
_NOTHING = {"cpu": "no core", "ephemeral-storage": "no disk", PODS: "no pod"}


def resource_amounts(quantities: Mapping[str, str]) -> ResourceAmounts:
    """Read a Kubernetes resource list; a quantity that cannot be read counts as 0. The result is shared: do not change it."""
    return _parsed(tuple(quantities.items()))


def requested_amounts(pod: Pod) -> ResourceAmounts:
    """Return what the pod takes of its node, its place among the node's pods included. The result is shared: do not change it."""
    spec = pod.spec
    return _requested(
        tuple(tuple(one.resources.requests.items()) for one in spec.containers),
        tuple((one.restart_policy == "Always", tuple(one.resources.requests.items())) for one in spec.init_containers),
        tuple(spec.resources.requests.items()),
        tuple(spec.overhead.items()),
    )


_Quantities = tuple[tuple[str, str], ...]


@lru_cache(maxsize=4096)  # the pods of a cluster request the same few lists again and again
def _parsed(quantities: _Quantities) -> ResourceAmounts:
    return {name: resource_amount(name, text) for name, text in quantities}


@lru_cache(maxsize=4096)
def _requested(
    containers: tuple[_Quantities, ...],
    init_containers: tuple[tuple[bool, _Quantities], ...],
    of_pod: _Quantities,
    overhead: _Quantities,
) -> ResourceAmounts:
    """Return the sum of containers and sidecars, or the largest step of the start-up if that is more, plus overhead and the pod itself.

    Requests of the whole pod replace the sum of its containers.
    """
    sidecars: dict[str, int] = {}
    largest_step: dict[str, int] = {}
    for is_sidecar, quantities in init_containers:
        step = _sum((sidecars, _parsed(quantities)))
        if is_sidecar:
            sidecars = step
        largest_step = {name: max(largest_step.get(name, 0), step.get(name, 0)) for name in {**largest_step, **step}}
    running = _sum((sidecars, *(_parsed(quantities) for quantities in containers)))
    most = {name: max(running.get(name, 0), largest_step.get(name, 0)) for name in {**running, **largest_step}}
    return _sum(({**most, **_parsed(of_pod)}, _parsed(overhead), {PODS: 1}))


def _sum(each: Iterable[ResourceAmounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for amounts in each:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total


@lru_cache(maxsize=4096)  # nodes' lists differ, but few of their quantities do
def resource_amount(name: str, text: str) -> int:
    """Read a quantity of the resource; 0 when it cannot be read."""
    try:
        return millicores(text) if name == "cpu" else whole(text)
    except ValueError:
        return 0


def amount_words(resource: str, amount: int) -> str:
    """Return "2 cores", "32 GiB of memory", "1 GPU", "2 example.com/fpga"."""
    if not amount:
        return _NOTHING.get(resource) or ("no GPU" if resource.endswith("/gpu") else f"no {resource}")
    if resource == "cpu":
        return "1 core" if amount == 1000 else f"{format_cores(amount)} cores"
    if resource in _BYTES:
        return f"{format_bytes(amount)} of {_BYTES[resource]}"
    if resource.startswith("hugepages-"):
        return f"{format_bytes(amount)} of {resource}"
    if resource == PODS:
        return plural(amount, "pod")
    return plural(amount, "GPU") if resource.endswith("/gpu") else f"{amount:,} {resource}"


def compared(has: Mapping[str, int], needs: ResourceAmounts) -> tuple[str, str]:
    """Return both sides in words; where rounding makes them equal, the need is "a little more"."""
    pairs = [(amount_words(name, has[name]), amount_words(name, needs[name])) for name in has]
    return (
        listed(mine for mine, _ in pairs),
        listed(f"a little more than {mine}" if mine == need else need for mine, need in pairs),
    )
