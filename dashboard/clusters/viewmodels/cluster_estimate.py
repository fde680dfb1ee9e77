"""Estimates a cluster before its launch: slots, nodes and price at its minimum and maximum, and how its workers fit on the nodes of
their pool; pure.

Nodes are estimated as if they were empty but for the pods that run on every node: first fit, largest first, on the largest node that
each pool has now, or as its nodes were when last seen. Free space on nodes in use makes the real number smaller.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from dashboard.executions.viewmodels.launch import Slots
from dashboard.shell.viewmodels.format import cores_words, price_number
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import CURRENCY, listed, plural
from grid.diagnosis.launchfit import LaunchFacts, LaunchPool, PodPlan, Pools, fit, largest_for, nodes_needed, places
from grid.diagnosis.requests import Amounts, summary

Severity = Literal["ok", "wait", "problem"]
_HALF = 2  # more than half of a node's CPU or memory left unused is worth advice


@dataclass(frozen=True, slots=True)
class Machine:
    """One pod of a tier: the tier's price an hour, its limit of simultaneous executions (`places`) and how many run now."""

    plan: PodPlan
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


def estimate(plan: ClusterPlan, slots: Slots, pools: Pools | None) -> Estimate:
    """Return the estimate, without a word about nodes while the cluster is unknown (`pools` is None)."""
    counts = tuple(dict.fromkeys((plan.minimum, plan.maximum)))
    low, high = slots_of(plan, plan.minimum), slots_of(plan, plan.maximum)
    fixed = plan.head.price + (plan.companion.price if plan.companion else 0)
    prices = [fixed + workers * plan.worker.price for workers in counts]
    rows = [Row(_("Slots"), tuple(f"{slots_of(plan, workers):,}" for workers in counts))]
    if pools is not None:
        rows.append(Row(_("Nodes"), tuple(_nodes_words(nodes_of(plan, workers, pools)) for workers in counts)))
    words = tuple(f"{CURRENCY}{price_number(price)}" if price else _("free") for price in prices)
    rows.append(Row(_("Price an hour"), words))
    taken, about_nodes = plural(low, "slot", "slots"), _node_notes(plan, pools) if pools is not None else ()
    if low != high:
        taken = _("{slots} at minimum, {high:,} at maximum", slots=taken, high=high)
    return Estimate(
        sentence=_("{taken}; you use {used:,} of {maximum:,}.", taken=taken, used=slots.used, maximum=slots.maximum),
        columns=tuple(plural(workers, "worker", "workers") for workers in counts),
        rows=tuple(rows),
        notes=(_slots_note(plan, slots, high), *_place_notes(plan), *about_nodes),
    )


def slots_of(plan: ClusterPlan, workers: int) -> int:
    """Return the slots of the head, of each worker, and of the execution that the cluster is attached to: one each."""
    return 1 + workers + (plan.companion is not None)


def nodes_of(plan: ClusterPlan, workers: int, pools: Pools) -> dict[str, int | None]:
    """Return the number of nodes by pool; None where the pool has no node, and none is remembered, or only too small ones."""
    wanted: dict[str, list[PodPlan]] = {}
    for machine, count in ((plan.worker, workers), (plan.head, 1), (plan.companion, 1)):
        if machine is not None:
            wanted.setdefault(machine.plan.pool, []).append(replace(machine.plan, count=count))
    return {name: nodes_needed(plans, _pool(name, pools)) for name, plans in wanted.items()}


def _nodes_words(by_pool: Mapping[str, int | None]) -> str:
    known = [count for count in by_pool.values() if count is not None]
    if not known:
        return _("not known")
    return f"{sum(known):,}" if len(known) == len(by_pool) else _("{known:,} and more", known=sum(known))


def _slots_note(plan: ClusterPlan, slots: Slots, most: int) -> Note:
    if not slots.maximum:
        return Note("wait", _("Launching is switched off by your admin; this waits until that changes."))
    if most > slots.maximum:
        allowed = plural(slots.maximum, "slot", "slots")
        return Note("problem", _("That is more than your {slots}; choose fewer workers.", slots=allowed))
    kept = ngettext(
        "{count:,} slot is kept for it from the start", "{count:,} slots are kept for it from the start", most
    )
    free = max(0, slots.maximum - slots.used)
    if most > free:
        sentence = _("{kept}, and {free:,} are free: it waits in the queue until one of your executions ends.")
        return Note("wait", sentence.format(kept=kept, free=free))
    grows = plan.maximum > plan.minimum
    return Note("ok", _("{kept}, so that it can always grow.", kept=kept) if grows else f"{kept}.")


def _place_notes(plan: ClusterPlan) -> list[Note]:
    """Return notes about tiers that limit simultaneous executions: a cluster counts once on its workers' and, if another, its head's."""
    cluster = {machine.plan.tier: machine for machine in (plan.head, plan.worker)}
    companion = {plan.companion.plan.tier: plan.companion} if plan.companion else {}
    notes = []
    for tier, wanted in Counter([*cluster, *companion]).items():
        machine = (cluster | companion)[tier]
        if machine.places is None or wanted <= machine.places - machine.running:
            continue
        taken = plural(wanted, "place", "places")
        takes = _("This takes {places} on the tier {tier}, which runs at most {most:,} at once")
        takes = takes.format(places=taken, tier=tier, most=machine.places)
        if wanted > machine.places:
            advice = _("{takes}. Choose another tier for the cluster or what it is attached to.", takes=takes)
            notes.append(Note("problem", advice))
        else:
            queued = _("{takes} and {running:,} now: it waits in the queue until one ends.")
            notes.append(Note("wait", queued.format(takes=takes, running=machine.running)))
    return notes


def _node_notes(plan: ClusterPlan, pools: Pools) -> list[Note]:
    low, high = nodes_of(plan, plan.minimum, pools), nodes_of(plan, plan.maximum, pools)
    notes = [_misfit(plan.worker, _("Choose another tier for the worker."), pools) or _packing(plan.worker.plan, pools)]
    if plan.head.plan != plan.worker.plan:
        notes.append(_misfit(plan.head, _("Choose another tier for the head."), pools))
    notes += [_pool_note(_pool(name, pools), low[name], high[name]) for name in high]
    return [note for note in notes if note is not None]


def _misfit(machine: Machine, advice: str, pools: Pools) -> Note | None:
    """Return a note about a pod that no node of its pool takes, not even an empty one; None also when nobody knows how large one is."""
    diagnosis, pool = fit((machine.plan,), LaunchFacts(pools)), _pool(machine.plan.pool, pools)
    if diagnosis.severity != "problem" or not pool.known or not (pool.nodes or pool.maximum):
        return None
    return Note("problem", f"{diagnosis.sentence} {advice}")


def _packing(worker: PodPlan, pools: Pools) -> Note | None:
    """Return how many workers one empty node takes, and what then stays unused; None when the pool has no node, and none is remembered."""
    node = largest_for(worker, _pool(worker.pool, pools))
    if node is None:
        return None
    count = places(worker.requests, node.empty)
    left = {name: amount - count * worker.requests.get(name, 0) for name, amount in node.empty.items()}
    offered, unused = summary(node.empty), summary(left)
    stranded, whole = _amounts_words(unused), _("A node of the pool {pool} ({offered} after overhead) takes {workers}")
    whole = whole.format(pool=worker.pool, offered=_amounts_words(offered), workers=plural(count, "worker", "workers"))
    if not stranded:
        return Note("ok", _("{whole}, with nothing left over.", whole=whole))
    much = unused.cpu * _HALF > offered.cpu or unused.memory * _HALF > offered.memory or unused.gpus > 0
    advice = _(" Another tier may use it better.") if much else ""
    sentence = _("{whole}; {stranded} of it stay unused.{advice}", whole=whole, stranded=stranded, advice=advice)
    return Note("wait" if much else "ok", sentence)


def _pool(name: str, pools: Pools) -> LaunchPool:
    return pools.get(name, LaunchPool(name))


def _pool_note(state: LaunchPool, low: int | None, high: int | None) -> Note:
    pool, now, most = state.name, state.size, max(state.size, state.maximum)
    too_few = _("{has}: not even the minimum of workers finds a place. Choose fewer or smaller workers.")
    if not now and not state.maximum:
        sentence = _("The pool {pool} has no node, and none may be started. Choose a tier of another pool.", pool=pool)
        return Note("problem", sentence)
    if not now and low is not None and low > most:
        has = _("The pool {pool} has no node now, and may have {most:,}", pool=pool, most=most)
        return Note("problem", too_few.format(has=has))
    if not now:
        sentence = _("The pool {pool} has no node now; up to {most:,} are started as needed, in a few minutes.")
        return Note("wait", sentence.format(pool=pool, most=most))
    nodes, more = plural(now, "node", "nodes"), state.maximum - now
    growing = _("The pool {pool} has {nodes}, and up to {maximum:,} more may be started")
    has = growing if more > 0 else _("The pool {pool} has {nodes}, and no more may be started")
    has = has.format(pool=pool, nodes=nodes, maximum=more)
    if low is None or high is None:
        return Note("ok", f"{has}.")
    if low > most:
        return Note("problem", too_few.format(has=has))
    if high > most:
        return Note("wait", _("{has}: at the maximum, some workers will wait for a place.", has=has))
    if low > now:
        return Note("wait", _("{has}: it starts when the new ones are ready, in a few minutes.", has=has))
    return Note("ok", f"{has}.")


def _amounts_words(some: Amounts) -> str:
    cores = cores_words(f"{some.cpu}m") if some.cpu > 0 else ""
    memory = _("{size} of memory", size=format_bytes(some.memory)) if some.memory > 0 else ""
    parts = [part for part in (cores, memory, plural(some.gpus, "GPU", "GPUs") if some.gpus > 0 else "") if part]
    return listed(parts) if parts else ""
