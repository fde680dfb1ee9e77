"""Estimates a cluster before its launch: slots, nodes and price at its minimum and maximum, and how its workers fit on the nodes of
their pool; pure.

Nodes are estimated as if they were empty: first fit, largest first, on the largest node that each pool has now. Free space on nodes
in use makes the real number smaller, Kubernetes' own pods make it larger.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from dashboard.viewmodels.launch import Slots
from dashboard.viewmodels.prices import CURRENCY, price_number
from grid.diagnosis.requests import Amounts, amounts
from grid.diagnosis.tierfit import PoolOffer, TierSize, explain_fit
from grid.quantity import format_bytes, format_cores
from grid.wording import listed, plural

Severity = Literal["ok", "wait", "problem"]
_HALF = 2  # more than half of a node's CPU or memory left unused is worth advice


@dataclass(frozen=True, slots=True)
class Machine:
    """One pod's tier: its name, size and price an hour, its limit of simultaneous executions (`places`) and how many run now."""

    tier: str
    size: TierSize
    price: Decimal
    places: int | None = None
    running: int = 0


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A cluster to be estimated. `companion` is the machine of the execution that it is attached to; None for a cluster alone."""

    head: Machine
    worker: Machine
    minimum: int
    maximum: int
    companion: Machine | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the estimate, with one amount for each column."""

    label: str
    amounts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    severity: Severity
    sentence: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate in words. `sentence` is about slots; `columns` are the headers of minimum and maximum, or one when they are equal."""

    sentence: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[Note, ...]


def estimate(plan: ClusterPlan, slots: Slots, offers: Mapping[str, PoolOffer] | None) -> Estimate:
    """Return the estimate, without a word about nodes while the cluster is unknown (`offers` is None)."""
    counts = tuple(dict.fromkeys((plan.minimum, plan.maximum)))
    low, high = slots_of(plan, plan.minimum), slots_of(plan, plan.maximum)
    rows = [Row("Slots", tuple(f"{slots_of(plan, workers):,}" for workers in counts))]
    if offers is not None:
        rows.append(Row("Nodes", tuple(nodes_words(nodes_of(plan, workers, offers)) for workers in counts)))
    rows.append(Row("Price an hour", tuple(_price(price_of(plan, workers)) for workers in counts)))
    taken = plural(low, "slot") if low == high else f"{plural(low, 'slot')} at minimum, {high:,} at maximum"
    return Estimate(
        sentence=f"{taken}; you use {slots.used:,} of {slots.maximum:,}.",
        columns=tuple(plural(workers, "worker") for workers in counts),
        rows=tuple(rows),
        notes=(
            _slots_note(plan, slots, high),
            *_place_notes(plan),
            *(_node_notes(plan, offers) if offers is not None else ()),
        ),
    )


def slots_of(plan: ClusterPlan, workers: int) -> int:
    """Return the slots of the head, of each worker, and of the execution that the cluster is attached to: one each."""
    return 1 + workers + (plan.companion is not None)


def price_of(plan: ClusterPlan, workers: int) -> Decimal:
    companion = plan.companion.price if plan.companion else Decimal(0)
    return plan.head.price + workers * plan.worker.price + companion


def nodes_of(plan: ClusterPlan, workers: int, offers: Mapping[str, PoolOffer]) -> dict[str, int | None]:
    """Return the number of nodes by pool; None where it is unknown, because the pool has no node now or only too small ones."""
    pools: dict[str, list[tuple[TierSize, int]]] = {}
    for machine, count in ((plan.worker, workers), (plan.head, 1), (plan.companion, 1)):
        if machine is not None:
            pools.setdefault(machine.size.node_pool, []).append((machine.size, count))
    return {pool: _nodes_in(pool, wanted, offers) for pool, wanted in pools.items()}


def nodes_needed(pods: Iterable[tuple[Amounts, int]], node: Amounts) -> int | None:
    """Return how many nodes of one size take the pods (sizes and counts), by first fit in the order given; None when a pod fits no node.

    Whole groups are counted at once, so that thousands of workers cost no more than one.
    """
    opened: list[tuple[Amounts, int]] = []  # free amounts and number of nodes, in the order of opening
    for asked, count in pods:
        each = per_node(asked, node)
        if count and not each:
            return None
        left, filled = _fill(opened, asked, count)
        opened = filled + _fill([(node, -(-left // each))], asked, left)[1] if left else filled
    return sum(nodes for _, nodes in opened)


def _fill(opened: Iterable[tuple[Amounts, int]], asked: Amounts, count: int) -> tuple[int, list[tuple[Amounts, int]]]:
    """Put as many pods as fit into the nodes. Return how many are left over, and what the nodes then have free."""
    after: list[tuple[Amounts, int]] = []
    for free, nodes in opened:
        each = per_node(asked, free)
        full = min(nodes, count // each) if each else 0
        rest = count - full * each if each and full < nodes else 0
        count -= full * each + rest
        partial = 1 if rest else 0
        parts = (
            (_minus(free, asked, each), full),
            (_minus(free, asked, rest), partial),
            (free, nodes - full - partial),
        )
        after += [(remaining, many) for remaining, many in parts if many]
    return count, after


def per_node(asked: Amounts, node: Amounts) -> int:
    """Return how many pods of this size one empty node takes; 1 for a pod that requests nothing."""
    shares = [
        has // wants
        for has, wants in ((node.cpu, asked.cpu), (node.memory, asked.memory), (node.gpus, asked.gpus))
        if wants > 0
    ]
    return min(shares, default=1)


def nodes_words(by_pool: Mapping[str, int | None]) -> str:
    known = [count for count in by_pool.values() if count is not None]
    if not known:
        return "not known"
    return f"{sum(known):,}" if len(known) == len(by_pool) else f"{sum(known):,} and more"


def _nodes_in(pool: str, wanted: Sequence[tuple[TierSize, int]], offers: Mapping[str, PoolOffer]) -> int | None:
    gpu_resource = next((size.gpu_resource for size, _ in wanted if size.gpus), "")
    node = node_size(offers.get(pool), gpu_resource)
    if node is None:
        return None
    groups = [(_asked(size), count) for size, count in wanted]
    return nodes_needed(sorted(groups, key=lambda one: _share(one[0], node), reverse=True), node)


def node_size(offer: PoolOffer | None, gpu_resource: str) -> Amounts | None:
    """Return the size of the pool's largest node now; None while it has no node."""
    if offer is None or not offer.allocatable:
        return None
    nodes = (
        amounts({"cpu": one.get("cpu", "0"), "memory": one.get("memory", "0"), "its/gpu": one.get(gpu_resource, "0")})
        for one in offer.allocatable
    )
    return max(nodes, key=lambda node: (node.gpus, node.cpu, node.memory))


def _slots_note(plan: ClusterPlan, slots: Slots, most: int) -> Note:
    if not slots.maximum:
        return Note("wait", "Launching is switched off by your admin; this waits until that changes.")
    if most > slots.maximum:
        return Note("problem", f"That is more than your {plural(slots.maximum, 'slot')}; choose fewer workers.")
    kept = f"{plural(most, 'slot')} {'is' if most == 1 else 'are'} kept for it from the start"
    if most > slots.maximum - slots.used:
        free = max(0, slots.maximum - slots.used)
        return Note("wait", f"{kept}, and {free:,} are free: it waits in the queue until something of yours ends.")
    reason = ", so that it can always grow" if plan.maximum > plan.minimum else ""
    return Note("ok", f"{kept}{reason}.")


def _place_notes(plan: ClusterPlan) -> list[Note]:
    """Return notes about tiers that limit simultaneous executions. A cluster counts once on its workers' tier, and once on its head's if
    that is another; the execution that it is attached to counts on its own."""
    cluster = dict.fromkeys((plan.worker, plan.head))
    machines = [one for one in (*cluster, plan.companion) if one is not None]
    notes = []
    for tier, wanted in Counter(machines).items():
        if tier.places is None or wanted <= tier.places - tier.running:
            continue
        takes = (
            f"This takes {plural(wanted, 'place')} on the tier {tier.tier}, which runs at most {tier.places:,} at once"
        )
        if wanted > tier.places:
            notes.append(Note("problem", f"{takes}. Choose another tier for the cluster or what it is attached to."))
        else:
            notes.append(Note("wait", f"{takes} and {tier.running:,} now: it waits in the queue until one ends."))
    return notes


def _node_notes(plan: ClusterPlan, offers: Mapping[str, PoolOffer]) -> list[Note]:
    low, high = nodes_of(plan, plan.minimum, offers), nodes_of(plan, plan.maximum, offers)
    notes = [_fit_note(plan.worker, "worker", offers)]
    if plan.head.size != plan.worker.size:
        unfit = explain_fit(plan.head.size, offers)
        if unfit is not None and unfit.code == "too_large":
            notes.append(_fit_note(plan.head, "head", offers))
    notes += [_pool_note(offers.get(pool, PoolOffer(pool)), low[pool], high[pool]) for pool in high]
    return [note for note in notes if note.sentence]


def _fit_note(machine: Machine, word: str, offers: Mapping[str, PoolOffer]) -> Note:
    size = machine.size
    unfit = explain_fit(size, offers)
    node = node_size(offers.get(size.node_pool), size.gpu_resource)
    if unfit is not None and unfit.code == "too_large":
        return Note("problem", f"{unfit.sentence} Choose a smaller tier for the {word}.")
    if unfit is not None or node is None:
        return Note("ok", "")  # the pool's own note says it
    asked = _asked(size)
    count = per_node(asked, node)
    if count == 0:
        return Note("ok", "")
    unused = _minus(node, asked, count)
    whole = f"A node of the pool {size.node_pool} ({_amounts_words(node)}) takes {plural(count, word)}"
    stranded = _amounts_words(unused)
    much = unused.cpu * _HALF > node.cpu or unused.memory * _HALF > node.memory or unused.gpus > 0
    if not stranded:
        return Note("ok", f"{whole}, with nothing left over.")
    advice = " Another tier may use it better." if much else ""
    return Note("wait" if much else "ok", f"{whole}; {stranded} of it stay unused.{advice}")


def _pool_note(offer: PoolOffer, low: int | None, high: int | None) -> Note:
    now = len(offer.allocatable)
    pool = f"The pool {offer.name}"
    most = max(now, offer.maximum)
    if not now and not offer.maximum:
        return Note("problem", f"{pool} has no node, and none may be started. Choose a tier of another pool.")
    if not now:
        return Note("wait", f"{pool} has no node now; up to {most:,} are started as they are needed, in some minutes.")
    has = f"{pool} has {plural(now, 'node')}, and up to {offer.maximum - now:,} more may be started"
    if offer.maximum <= now:
        has = f"{pool} has {plural(now, 'node')}, and no more may be started"
    if low is None or high is None:
        return Note("ok", f"{has}.")
    if low > most:
        return Note(
            "problem", f"{has}: not even the minimum of workers finds a place. Choose fewer or smaller workers."
        )
    if high > most:
        return Note("wait", f"{has}: at the maximum, some workers will wait for a place.")
    if low > now:
        return Note("wait", f"{has}: it starts when the new ones are ready, in some minutes.")
    return Note("ok", f"{has}.")


def _asked(size: TierSize) -> Amounts:
    return amounts({"cpu": size.cores, "memory": size.memory, "its/gpu": str(size.gpus)})


def _minus(node: Amounts, asked: Amounts, count: int) -> Amounts:
    return Amounts(node.cpu - asked.cpu * count, node.memory - asked.memory * count, node.gpus - asked.gpus * count)


def _share(asked: Amounts, node: Amounts) -> float:
    """Return the pod's share of a node, by the resource of which it takes most."""
    pairs = ((asked.cpu, node.cpu), (asked.memory, node.memory), (asked.gpus, node.gpus))
    return max((wants / has if has else float(wants > 0)) for wants, has in pairs)


def _amounts_words(some: Amounts) -> str:
    parts = []
    if some.cpu > 0:
        parts.append(f"{format_cores(some.cpu)} {'core' if some.cpu == 1000 else 'cores'}")
    if some.memory > 0:
        parts.append(f"{format_bytes(some.memory)} of memory")
    if some.gpus > 0:
        parts.append(plural(some.gpus, "GPU"))
    return listed(parts) if parts else ""


def _price(cost: Decimal) -> str:
    return f"{CURRENCY}{price_number(cost)}" if cost else "free"
