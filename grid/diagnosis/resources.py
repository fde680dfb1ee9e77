"""Requests of pods and allocatable of nodes with every resource by its own name, as the scheduler compares them; pure.

CPU is in thousandths of a core, everything else in whole units. A pod counts as one of the resource "pods".
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from grid.core.quantity import LARGEST, QuantityTooLarge, format_bytes, format_cores, is_gpu, millicores, whole
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed, plural
from grid.kube.objects import ContainerSpec, Pod

ResourceAmounts = Mapping[str, int]
PODS = "pods"
_BYTES = {"memory": _("memory"), "ephemeral-storage": _("disk"), "storage": _("storage")}
_NOTHING = {"cpu": _("no core"), "ephemeral-storage": _("no disk"), PODS: _("no pod")}


def resource_amounts(quantities: Mapping[str, str]) -> ResourceAmounts:
    """Read a Kubernetes resource list; a quantity that cannot be read counts as 0. The result is shared: do not change it."""
    return _parsed(tuple(quantities.items()))


def requested_amounts(pod: Pod) -> ResourceAmounts:
    """Return what the pod takes of its node, its place among the node's pods included. The result is shared: do not change it."""
    spec, held, is_infeasible = pod.spec, _held_in_resize(pod), _is_infeasible(pod)
    return _requested(
        tuple(_requests(container, held, is_infeasible=is_infeasible) for container in spec.containers),
        tuple(
            (True, _requests(container, held, is_infeasible=is_infeasible))
            if container.restart_policy == "Always"
            else (False, tuple(container.resources.requests.items()))
            for container in spec.init_containers
        ),
        tuple(spec.resources.requests.items()),
        tuple(spec.overhead.items()),
    )


_Quantities = tuple[tuple[str, str], ...]
_HeldByName = Mapping[str, tuple[Mapping[str, str], ...]]
_NOTHING_HELD: _HeldByName = {}


def _held_in_resize(pod: Pod) -> _HeldByName:
    """Return by container what it has and what its node has allocated to it; empty unless the pod is resized in place."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    if all(status.resources is None for status in statuses):
        return _NOTHING_HELD
    resized = ((each, each.resources) for each in statuses)
    return {each.name: (has.requests, each.allocated_resources or {}) for each, has in resized if has is not None}


def _requests(container: ContainerSpec, held: _HeldByName, *, is_infeasible: bool) -> _Quantities:
    """Return what the scheduler counts of a container: during a resize the largest of its request and of what it holds. A resize that is
    infeasible is never made: its request does not count. Source: `determineContainerReqs` of component-helpers/resource."""
    wanted = container.resources.requests
    if container.name not in held:
        return tuple(wanted.items())
    largest = {} if is_infeasible else dict(wanted)
    for quantities in held[container.name]:
        for name, text in quantities.items():
            if name not in largest or resource_amount(name, text) > resource_amount(name, largest[name]):
                largest[name] = text
    return tuple(largest.items())


def _is_infeasible(pod: Pod) -> bool:
    """Return what `IsPodResizeInfeasible` does: the reason of the first such condition decides, whatever its status."""
    return next((each.reason for each in pod.status.conditions if each.type == "PodResizePending"), "") == "Infeasible"


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
    Requests of the whole pod replace the sum of its containers."""
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
    except QuantityTooLarge:
        return LARGEST
    except ValueError:
        return 0


def core_words(milli: int) -> str:
    """Return "1 core", "0.5 cores"."""
    whole_cores = milli // 1000 if milli % 1000 == 0 else 2  # of a part of a core, many languages say the plural
    return ngettext("{cores} core", "{cores} cores", whole_cores, cores=format_cores(milli))


def amount_words(resource: str, amount: int) -> str:
    """Return "2 cores", "32 GiB of memory", "1 GPU", "2 example.com/fpga"."""
    if not amount:
        return _NOTHING.get(resource) or (_("no GPU") if is_gpu(resource) else _("no {resource}", resource=resource))
    if resource == "cpu":
        return core_words(amount)
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _("{amount} of {resource}", amount=format_bytes(amount), resource=_BYTES.get(resource, resource))
    if resource == PODS:
        return plural(amount, "pod", "pods")
    return plural(amount, "GPU", "GPUs") if is_gpu(resource) else f"{amount:,} {resource}"


def compared(has: Mapping[str, int], needs: ResourceAmounts) -> tuple[str, str]:
    """Return both sides in words; where rounding makes them equal, the need is "a little more"."""
    pairs = [(amount_words(name, has[name]), amount_words(name, needs[name])) for name in has]
    more = [_("a little more than {amount}", amount=mine) if mine == need else need for mine, need in pairs]
    return listed(mine for mine, _need in pairs), listed(more)
