"""Tells the admin who edits a hardware tier whether it can run on any node of its pool; never a reason to refuse the tier. Pure.

Compares with whole empty nodes. What Kubernetes' own pods take of each node is not subtracted, so a tier as large as a node may still find
no place; a tier that is called too large certainly fits none of the present nodes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.requests import Amounts, amounts
from grid.kube.objects import Node
from grid.labels import NODE_POOL
from grid.quantity import format_bytes, format_cores
from grid.watch.pools import NodeGroup
from grid.wording import listed, plural


@dataclass(frozen=True, slots=True)
class TierSize:
    """What an execution on the tier requests, as typed; a quantity that cannot be read counts as 0."""

    node_pool: str
    cores: str
    memory: str
    gpus: int
    gpu_resource: str


@dataclass(frozen=True, slots=True)
class PoolOffer:
    """A node pool: the allocatable of each of its nodes, and its maximum of nodes (0: the autoscaler does not know the pool)."""

    name: str
    allocatable: tuple[Mapping[str, str], ...] = ()
    maximum: int = 0


def pool_offers(
    nodes: Iterable[Node], groups: Mapping[str, NodeGroup], *, label: str = NODE_POOL
) -> dict[str, PoolOffer]:
    """Return every pool that has nodes now or may get some, by name."""
    found: dict[str, list[Mapping[str, str]]] = {name: [] for name in groups}
    for node in nodes:
        pool = node.metadata.labels.get(label, "")
        if pool:
            found.setdefault(pool, []).append(node.status.allocatable)
    return {
        name: PoolOffer(name, tuple(found[name]), groups[name].maximum if name in groups else 0)
        for name in sorted(found)
    }


def largest(offer: PoolOffer, *, gpu_resource: str) -> Amounts:
    """Return the most of each resource that any node has; not necessarily the same node for all."""
    most = Amounts()
    for allocatable in offer.allocatable:
        most = most.at_least(_of_node(allocatable, gpu_resource))
    return most


def explain_fit(tier: TierSize, offers: Mapping[str, PoolOffer]) -> Diagnosis | None:
    """Explain why no node of the tier's pool could take it even when empty; None when one could."""
    offer = offers.get(tier.node_pool, PoolOffer(tier.node_pool))
    if not offer.allocatable:
        return _without_nodes(offer)
    wanted = amounts({"cpu": tier.cores, "memory": tier.memory, "its/gpu": str(tier.gpus)})
    nodes = [_of_node(allocatable, tier.gpu_resource) for allocatable in offer.allocatable]
    if any(_fits(wanted, node) for node in nodes):
        return None
    most = largest(offer, gpu_resource=tier.gpu_resource)
    short = [
        f"it asks for {asked if asked != has else f'a little more than {has}'} {word}, but the largest node has {has}"
        for word, asked, has, is_short in (
            ("cores", format_cores(wanted.cpu), format_cores(most.cpu), wanted.cpu > most.cpu),
            ("of memory", format_bytes(wanted.memory), format_bytes(most.memory), wanted.memory > most.memory),
            (f"GPUs ({tier.gpu_resource})", str(wanted.gpus), str(most.gpus), wanted.gpus > most.gpus),
        )
        if is_short
    ]
    reason = "; ".join(short) or f"none has {_words(wanted)} together"
    sentence = f"No node of the pool {offer.name} is large enough for this tier, not even an empty one: {reason}."
    step = (
        "Make the tier smaller or choose another pool; until then, what is launched on it waits and ends as an error."
    )
    return Diagnosis("too_large", sentence, "problem", "admin", step)


def _without_nodes(offer: PoolOffer) -> Diagnosis:
    if offer.maximum > 0:
        sentence = (
            f"The pool {offer.name} has no node now; the autoscaler starts one when somebody launches on this tier "
            f"(at most {plural(offer.maximum, 'node')}). Only then can be said whether the tier fits."
        )
        return Diagnosis("pool_empty", sentence, "wait", "", "Nothing to do if you know the size of its nodes.")
    sentence = f"The pool {offer.name} has no node, and the autoscaler may not start one."
    step = "Choose another pool, or ask an operator to add nodes; until then, what is launched on this tier waits."
    return Diagnosis("no_nodes", sentence, "problem", "operator", step)


def _of_node(allocatable: Mapping[str, str], gpu_resource: str) -> Amounts:
    """Return the node's amounts, counting only the tier's GPU resource, whatever its name."""
    counted = {"cpu": "cpu", "memory": "memory", gpu_resource: "its/gpu"}
    return amounts({counted[name]: text for name, text in allocatable.items() if name in counted})


def _fits(wanted: Amounts, node: Amounts) -> bool:
    return wanted.cpu <= node.cpu and wanted.memory <= node.memory and wanted.gpus <= node.gpus


def _words(wanted: Amounts) -> str:
    parts = [plural(1, "core") if wanted.cpu == 1000 else f"{format_cores(wanted.cpu)} cores"]
    parts.append(f"{format_bytes(wanted.memory)} of memory")
    if wanted.gpus:
        parts.append(plural(wanted.gpus, "GPU"))
    return listed(parts)
