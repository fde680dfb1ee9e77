"""Tells how a hardware tier fits the nodes of its pool: places, what stays unused, what rules a node out, and better sizes; pure.

Finds also the tiers that people cannot tell apart, and those that another one beats in size and price.

Each node is taken as otherwise empty, with its own pods on it (see `nodeshapes`), and filled with executions of this tier alone. A pool
that is scaled to zero is judged by what its nodes were when last seen.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from grid.core.quantity import format_bytes, format_cores, is_gpu
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed, plural
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.nodeshapes import NodeShape, PoolShapes, Room
from grid.diagnosis.places import taint_text, untolerated
from grid.diagnosis.resources import amount_words
from grid.kube.objects import Taint, Toleration

CPU, MEMORY = "cpu", "memory"
_BYTES = {MEMORY: "memory", "ephemeral-storage": "disk"}
# Some nodes do not tell these; then they are not judged.
_MAY_BE_UNKNOWN = frozenset({"pods", "ephemeral-storage"})
MOST_CUT = 4  # a size is cut by a fourth at most to get one more place: beyond that it is another tier
_WORTH = 10  # a tenth of a node unused is worth a word
Sidecar = Literal["front", "executor"]
_SIDECARS: Mapping[Sidecar, str] = {
    "front": _("nginx in front of a web page"),
    "executor": _("the executor of a project whose files are in Git"),
}
ALIKE_PERCENT = 10  # sizes closer than this in cores and memory are one choice to a person
MOST_PLACES = 16  # beyond so many places a node is packed well enough by any size


@dataclass(frozen=True, slots=True)
class TierRequest:
    """What one execution on a tier requests of its node, and what it tolerates. `requests` counts the pod itself as `pods`; those
    of the `sidecars` in the same pod are apart."""

    pool: str
    requests: Room
    tolerations: tuple[Toleration, ...] = ()
    sidecar_requests: Room = field(default_factory=dict)
    sidecars: tuple[Sidecar, ...] = ("executor",)

    def taken(self, name: str) -> int:
        """Return what a place takes of the resource in all."""
        return self.requests.get(name, 0) + self.sidecar_requests.get(name, 0)


@dataclass(frozen=True, slots=True)
class Packing:
    """A shape of node filled with executions of one tier. `binding` names the resources that allow no further place; `left` is what then
    stays unused; `untolerated` are the taints that keep the tier off."""

    shape: NodeShape
    places: int
    binding: tuple[str, ...]
    left: Room
    untolerated: tuple[Taint, ...]

    @property
    def takes(self) -> int:
        """The places on a node of this shape that an execution really gets: none behind a taint."""
        return 0 if self.untolerated else self.places

    @property
    def wastes(self) -> tuple[str, ...]:
        """The resources of which a tenth of the node or more stays unused, and GPUs of which any does."""
        free, unused = self.shape.free, [(name, amount) for name, amount in self.left.items() if amount > 0]
        much = {name for name, amount in unused if name in (CPU, MEMORY) and amount * _WORTH >= free[name]}
        return tuple(name for name, _amount in unused if is_gpu(name) or name in much)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A size that packs the node better: `more` places with less, or the same places with the node used `full`."""

    kind: Literal["more", "full"]
    requests: Room
    places: int


@dataclass(frozen=True, slots=True)
class TierFit:
    """The doctor's finding. `best` is the packing that advice is about; `problem` is None when some node, when empty, takes an execution.
    `seen` is "" or, of a pool that has no node now, the day on which its nodes were last seen: then the one shape is theirs."""

    request: TierRequest
    packings: tuple[Packing, ...]
    best: Packing | None
    problem: Diagnosis | None
    suggestions: tuple[Suggestion, ...]
    seen: str = ""

    @property
    def usable(self) -> list[Packing]:
        """The packings of the shapes of which a node takes an execution, now or once it is started."""
        return [packing for packing in self.packings if packing.takes and (packing.shape.nodes or self.seen)]


def examine(request: TierRequest, pool: PoolShapes) -> TierFit:
    """Return how the tier, with its sidecars, fits the pool's nodes, or those that the autoscaler will start in a pool that has none."""
    alone = _examine(replace(request, sidecar_requests={}), pool)
    if alone.best is None or not request.sidecar_requests:
        return alone
    fit = _examine(request, pool)
    return fit if fit.best is not None else replace(fit, problem=_no_room_with_sidecars(request, as_seen(fit.seen)))


def _examine(request: TierRequest, pool: PoolShapes) -> TierFit:
    shapes, seen = (pool.shapes, "") if pool.next is None else ((pool.next,), pool.seen)
    fit = TierFit(request, tuple(pack(request, shape) for shape in shapes), None, None, (), seen)
    best = max(fit.usable, key=lambda packing: packing.shape.nodes, default=None)
    if best is None:
        return replace(fit, problem=_problem(request, pool, fit))
    return replace(fit, best=best, suggestions=suggestions(request, best))


def pack(request: TierRequest, shape: NodeShape) -> Packing:
    free = shape.free
    taken = {name: request.taken(name) for name in (*request.requests, *request.sidecar_requests)}
    judged = {name: amount for name, amount in taken.items() if amount > 0 and _is_told(name, free)}
    shares = {name: free.get(name, 0) // amount for name, amount in judged.items()}
    places = min(shares.values(), default=1)
    binding = tuple(name for name, share in shares.items() if share == places)
    left = {name: amount - places * request.taken(name) for name, amount in free.items()}
    return Packing(shape, places, binding, left, tuple(untolerated(shape.taints, request.tolerations)))


def suggestions(request: TierRequest, packing: Packing) -> tuple[Suggestion, ...]:
    """Return sizes that pack this shape better: one more place first, then the node used fully with the same places."""
    if not packing.places or packing.places > MOST_PLACES or not packing.wastes:
        return ()
    better = []
    if (cut := _cut(request, packing)) is not None:
        more = pack(replace(request, requests=cut), packing.shape).places  # rounding may make room for still another
        better.append(Suggestion("more", cut, more))
    if (grown := _grown(request, packing)) is not None:
        better.append(Suggestion("full", grown, packing.places))
    return tuple(better)


def _cut(request: TierRequest, packing: Packing) -> dict[str, int] | None:
    """Return the size of which one more fits the node, cut where it has to be; None when that is more than a fourth, or no size."""
    free, places, smaller = packing.shape.free, packing.places + 1, dict(request.requests)
    for name, amount in request.requests.items():
        if not _is_told(name, free) or request.taken(name) * places <= free.get(name, 0):
            continue
        share = 0
        if name in (CPU, MEMORY) and name in free:
            share = rounded(name, free[name] // places - request.sidecar_requests.get(name, 0))
        if (amount - share) * MOST_CUT > amount:
            return None
        smaller[name] = share
    return smaller


def _grown(request: TierRequest, packing: Packing) -> dict[str, int] | None:
    """Return the size that shares the node's CPU and memory among the same places; None when little of it stays unused anyway."""
    free, requests, larger = packing.shape.free, request.requests, dict(request.requests)
    for name in packing.wastes:
        if name in (CPU, MEMORY) and requests.get(name, 0) > 0:
            share = free[name] // packing.places - request.sidecar_requests.get(name, 0)
            larger[name] = max(requests[name], rounded(name, share))
    return larger if larger != requests else None


def rounded(name: str, amount: int) -> int:
    """Return the amount rounded down as people type it: quarters of a core, halves of a GiB, finer below one. Its words are exact."""
    whole, coarse, fine = (1000, 250, 50) if name == CPU else (2**30, 2**29, 2**26)
    step = coarse if amount >= whole else fine
    return amount // step * step


def words(room: Mapping[str, int], names: Iterable[str]) -> str:
    """Return the named amounts in words: "2 cores and 3.5 GiB of memory"; "" for none."""
    parts = [amount_words(name, room[name]) for name in names]
    return listed(parts) if parts else ""


def number(name: str, amount: int) -> str:
    """Return the amount without the resource's name: "2", "3.5 GiB"."""
    return format_cores(amount) if name == CPU else format_bytes(amount) if name in _BYTES else f"{amount:,}"


def _is_told(name: str, free: Mapping[str, int]) -> bool:
    return name in free or name not in _MAY_BE_UNKNOWN


def _problem(request: TierRequest, pool: PoolShapes, fit: TierFit) -> Diagnosis:
    packings, ending = fit.packings, as_seen(fit.seen)
    if not packings:
        return _without_nodes(pool)
    large = [packing for packing in packings if packing.places]
    if not large:
        return _too_large(request, pool, packings, ending)
    if all(packing.untolerated for packing in large):
        taints = dict.fromkeys(taint_text(taint) for packing in large for taint in packing.untolerated)
        return _tainted(pool, list(taints), ending)
    nodes = sum(packing.shape.away for packing in large if not packing.untolerated)
    sentence = ngettext(
        "No node of the pool {name} takes this tier now: {count:,} node would have a place for it, "
        "and is cordoned, not ready or being removed.",
        "No node of the pool {name} takes this tier now: {count:,} nodes would have a place for it, "
        "and are all cordoned, not ready or being removed.",
        nodes,
        name=pool.name,
    )
    return Diagnosis("away", sentence, "wait", "operator", _("Ask an operator about these nodes."))


def _no_room_with_sidecars(request: TierRequest, ending: str) -> Diagnosis:
    needed, sidecars = words(request.sidecar_requests, request.sidecar_requests), beside_words(request)
    sentence = _("No node of the pool {pool} has room for this tier and, beside it, {beside} for {sidecars}{ending}.")
    sentence = sentence.format(pool=request.pool, beside=needed, sidecars=sidecars, ending=ending)
    launchable = _("jobs without a page and clusters of projects with their files on a volume")
    if request.sidecars == ("front",):
        launchable = _("jobs without a page and clusters")
    elif "front" not in request.sidecars:
        launchable = _("projects with their files on a volume")
    step = _("Make the tier smaller by that much; until then, only {launchable} can launch on it.")
    return Diagnosis("no_room_beside", sentence, "wait", "admin", step.format(launchable=launchable))


def beside_words(request: TierRequest) -> str:
    """Return whose room stands beside programs."""
    return listed(_SIDECARS[sidecar] for sidecar in request.sidecars)


def as_seen(seen: str) -> str:
    """Return of when a pool's nodes are known, as an end of a sentence; "" when they are there."""
    return _(", as its nodes were when last seen on {seen}", seen=seen) if seen else ""


def _without_nodes(pool: PoolShapes) -> Diagnosis:
    if pool.maximum > 0:
        sentence = _(
            "The pool {name} has no node now; the autoscaler starts one when somebody launches on this tier "
            "(at most {nodes}). Only then is it known whether the tier fits."
        )
        sentence = sentence.format(name=pool.name, nodes=plural(pool.maximum, "node", "nodes"))
        return Diagnosis("pool_empty", sentence, "wait", "", _("Nothing to do if you know the size of its nodes."))
    sentence = _("The pool {name} has no node, and the autoscaler may not start one.", name=pool.name)
    step = _("Choose another pool, or ask an operator to add nodes; until then, what is launched on this tier waits.")
    return Diagnosis("no_nodes", sentence, "problem", "operator", step)


def _tainted(pool: PoolShapes, taints: list[str], ending: str) -> Diagnosis:
    sentence = ngettext(
        "No node of the pool {name} takes this tier: the nodes that are large enough have the taint "
        "{taints}, which it does not tolerate{ending}.",
        "No node of the pool {name} takes this tier: the nodes that are large enough have the taints "
        "{taints}, which it does not tolerate{ending}.",
        len(taints),
        name=pool.name,
        taints=listed(taints),
        ending=ending,
    )
    step = _("Add {taints} to its tolerations, or choose another pool; until then, what is launched on it waits.")
    return Diagnosis("tainted", sentence, "problem", "admin", step.format(taints=listed(taints)))


def _too_large(request: TierRequest, pool: PoolShapes, packings: tuple[Packing, ...], ending: str) -> Diagnosis:
    short = []
    left = _(" left beside its own pods") if any(packing.shape.own for packing in packings) else ""
    rooms = [packing.shape.free for packing in packings]
    for name, asked in request.requests.items():
        most = max((free.get(name, 0) for free in rooms if _is_told(name, free)), default=asked)
        if asked > most:
            wants, has = amount_words(name, asked), number(name, most)
            wants = _("a little more than {amount}", amount=wants) if number(name, asked) == has else wants
            reason = _("it asks for {wants}, but the largest node has {has}{left}", wants=wants, has=has, left=left)
            short.append(reason)
    together = words(request.requests, [name for name, amount in request.requests.items() if amount and name != "pods"])
    reason = "; ".join(short) or _("none has {together} together", together=together)
    sentence = _("No node of the pool {name} is large enough for this tier, not even an empty one: {reason}{ending}.")
    sentence = sentence.format(name=pool.name, reason=reason, ending=ending)
    step = _(
        "Make the tier smaller or choose another pool; until then, what is launched on it waits and ends as an error."
    )
    return Diagnosis("too_large", sentence, "problem", "admin", step)


@dataclass(frozen=True, slots=True)
class ComparedTier:
    """A tier as it is compared. `audience` is all that has to be equal for two tiers to be alternatives to each other: the pool, who may
    use them for what, and what their pods tolerate and carry."""

    id: str
    name: str
    size: Room
    price: Decimal
    audience: Hashable


@dataclass(frozen=True, slots=True)
class Overlap:
    """`beaten`: the other tier gives at least as much for at most the same price. `alike`: nearly the same size."""

    kind: Literal["beaten", "alike"]
    other: ComparedTier


def overlap(tier: ComparedTier, others: Iterable[ComparedTier]) -> Overlap | None:
    """Return the tier that makes this one needless, or else one of nearly the same size."""
    rivals = [rival for rival in others if rival.id != tier.id and rival.audience == tier.audience]
    better = [rival for rival in rivals if _beats(rival, tier)]
    if better:
        return Overlap("beaten", min(better, key=lambda rival: (rival.price, rival.name)))
    near = [rival for rival in rivals if _alike(rival, tier) and not _beats(tier, rival)]
    return Overlap("alike", min(near, key=lambda rival: rival.name)) if near else None


def _amounts(tier: ComparedTier, other: ComparedTier) -> list[tuple[int, int]]:
    return [(tier.size.get(name, 0), other.size.get(name, 0)) for name in tier.size.keys() | other.size.keys()]


def _beats(tier: ComparedTier, other: ComparedTier) -> bool:
    """Return whether a tier is at least as large in everything and costs no more, and is better in something."""
    pairs = _amounts(tier, other)
    no_worse = all(has >= asked for has, asked in pairs) and tier.price <= other.price
    return no_worse and (tier.price < other.price or any(has > asked for has, asked in pairs))


def _alike(tier: ComparedTier, other: ComparedTier) -> bool:
    return all(abs(has - asked) * 100 <= ALIKE_PERCENT * max(has, asked) for has, asked in _amounts(tier, other))
