"""What the tier doctor says on the admins' pages: nodes as bars filled with places, what stays unused, and advice; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from dashboard.usage.viewmodels.prices import price_words
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import listed, plural
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.nodeshapes import NodeShape
from grid.diagnosis.places import taint_text
from grid.executions.prices import part_beside
from grid.tiers.tierdoctor import (
    CPU,
    MEMORY,
    Packing,
    Suggestion,
    TierFit,
    TierRequest,
    as_seen,
    beside_words,
    is_gpu,
    number,
    words,
)
from grid.tiers.tieroverlap import Overlap

_WIDTH = 1000  # of a bar's picture
_GAP = 6
MOST_NAMED = 5  # executions of a tier that would no longer fit
_SEPARATE = 24  # more places are drawn as one
_SHOWN = (CPU, MEMORY)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a bar: "own" of the node's own pods, "place" of one execution; what is left of the bar is unused."""

    kind: str
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class PackedBar:
    """One resource of a node: how much of it the places use, in words and as a picture."""

    label: str
    text: str
    pieces: tuple[Piece, ...]
    is_binding: bool


@dataclass(frozen=True, slots=True)
class PackedShape:
    """Nodes that are alike, each filled with the tier's executions; `away` and `taints` say why some take none."""

    nodes: str
    size: str
    places: str
    unused: str
    bars: tuple[PackedBar, ...]
    away: str
    taints: str


@dataclass(frozen=True, slots=True)
class TierCheck:
    """The doctor's words about one tier. `fits` is short, for a table; `sentence` is for the tier's own page. `rival_id` is the tier that
    `overlap` is about."""

    severity: str
    fits: str
    sentence: str
    problem: Diagnosis | None
    places: str
    unused: str
    shapes: tuple[PackedShape, ...]
    advice: tuple[str, ...]
    short_advice: str
    overlap: str
    rival_id: str

    @property
    def bar(self) -> PackedBar | None:
        """The resource that allows no further place, on the most frequent node that takes the tier."""
        if self.problem is not None or not self.shapes:
            return None
        bars = self.shapes[0].bars
        return next((one for one in bars if one.is_binding), bars[0] if bars else None)


@dataclass(frozen=True, slots=True)
class Outgrown:
    """The running executions of one tier that no node would take again, not even an empty one: their number, and the oldest by id with
    their names."""

    tier_id: str
    tier_name: str
    named: Mapping[str, str]
    number: int
    is_archived: bool = False

    @property
    def sentence(self) -> str:
        return ngettext(
            "{count:,} running execution would no longer fit",
            "{count:,} running executions would no longer fit",
            self.number,
        )

    @property
    def more(self) -> int:
        return self.number - len(self.named)


_FITS = {
    "too_large": _("too large for its nodes"),
    "no_room_beside": _("not with what stands beside"),
    "tainted": _("taint not tolerated"),
    "away": _("no node takes it now"),
    "pool_empty": _("no node now"),
    "no_nodes": _("no nodes"),
}


def tier_check(fit: TierFit, overlap: Overlap | None, *, maximum_nodes: int) -> TierCheck:
    """Return the finding in words; `maximum_nodes` is how far the autoscaler may grow the pool, 0 when it does not know the pool."""
    shapes = tuple(_shape(group) for group in _alike(_in_order(fit)))
    sentence, places, fits = "", "", _("fits, when last seen") if fit.seen else _("fits")
    if fit.best is not None:
        places = _places(fit.usable)
        sentence = " ".join(filter(None, (_sentence(fit, maximum_nodes), _beside(fit.request))))
    return TierCheck(
        severity=fit.problem.severity if fit.problem else "ok",
        fits=_FITS.get(fit.problem.code, _("does not fit")) if fit.problem else fits,
        sentence=sentence,
        problem=fit.problem,
        places=places,
        unused=_short(fit.best.left, fit.best.wastes) if fit.best is not None else "",
        shapes=shapes,
        advice=_advice(fit),
        short_advice=_short_advice(fit),
        overlap=_overlap(overlap) if overlap else "",
        rival_id=overlap.other.id if overlap else "",
    )


def relaunch_sentence(running: int) -> str:
    """Return what a tier that fits no node means for the executions that run on it; "" when none does."""
    if not running:
        return ""
    return ngettext(
        "{count:,} execution runs on this tier now. It keeps its node; launched again on these values, it finds no place.",
        "{count:,} executions run on this tier now. They keep their nodes; launched again on these values, they find no place.",
        running,
    )


def _in_order(fit: TierFit) -> list[Packing]:
    return sorted(fit.packings, key=lambda one: (one is not fit.best, not one.takes, -one.shape.nodes))


def _alike(packings: Iterable[Packing]) -> list[list[Packing]]:
    """Group shapes that a reader cannot tell apart: machines of one type differ by some KiB of memory."""
    groups: dict[tuple[object, ...], list[Packing]] = {}
    for one in packings:
        key = (_size(one.shape), one.places, one.binding, _unused(one), tuple(map(taint_text, one.untolerated)))
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _shape(group: Sequence[Packing]) -> PackedShape:
    first, nodes = group[0], sum(one.shape.nodes for one in group)
    away = sum(one.shape.away for one in group)
    return PackedShape(
        nodes=plural(nodes or away, "node", "nodes") if nodes or away else _("a new node"),
        size=_size(first.shape),
        places=_places_words(first),
        unused=_unused(first),
        bars=_bars(first),
        away=_away_words(away, is_more=bool(nodes)) if away else "",
        taints=listed(map(taint_text, first.untolerated)) if first.untolerated else "",
    )


def _away_words(away: int, *, is_more: bool) -> str:
    if not is_more:
        return _("cordoned, not ready or being removed")
    return ngettext(
        "{count:,} more node cordoned, not ready or being removed",
        "{count:,} more nodes cordoned, not ready or being removed",
        away,
    )


def _places_words(packing: Packing) -> str:
    if not packing.places:
        return _("no place")
    places = plural(packing.places, "place", "places")
    return _("{places} without the taint", places=places) if packing.untolerated else places


def _size(shape: NodeShape) -> str:
    """Return the size of the node, such as "8 cores, 31 GiB, 1 GPU"."""
    amounts = shape.allocatable
    parts = [_("{cores} cores", cores=format_cores(amounts.get(CPU, 0))), format_bytes(amounts.get(MEMORY, 0))]
    gpus = sum(amount for name, amount in amounts.items() if is_gpu(name))
    return ", ".join([*parts, *([plural(gpus, "GPU", "GPUs")] if gpus else [])])


def _unused(packing: Packing) -> str:
    return words(packing.left, packing.wastes) if packing.places else ""


def _bars(packing: Packing) -> tuple[PackedBar, ...]:
    shape = packing.shape
    names = [name for name in shape.allocatable if name in _SHOWN or is_gpu(name)]
    order = sorted(names, key=lambda name: (is_gpu(name), name))
    return tuple(_bar(packing, name) for name in order if shape.allocatable[name])


def _bar(packing: Packing, name: str) -> PackedBar:
    whole = packing.shape.allocatable[name]
    own = whole - packing.shape.free[name]
    used = packing.shape.free[name] - packing.left[name]
    pieces, each = [], used / packing.places if packing.places else 0.0
    if own:
        pieces.append(Piece("own", 0, max(1, round(_WIDTH * own / whole))))
    if used and packing.places <= _SEPARATE:
        edges = [round(_WIDTH * (own + each * place) / whole) for place in range(packing.places + 1)]
        pieces += [Piece("place", start, max(1, end - start - _GAP)) for start, end in pairwise(edges)]
    elif used:
        pieces.append(Piece("place", round(_WIDTH * own / whole), max(1, round(_WIDTH * used / whole))))
    label = _("CPU") if name == CPU else _("Memory") if name == MEMORY else _("GPUs")
    free = packing.shape.free[name]
    return PackedBar(
        label,
        _("{used} of {free}", used=number(name, used), free=number(name, free)),
        tuple(pieces),
        name in packing.binding,
    )


def _places(usable: Sequence[Packing]) -> str:
    """Return the places on a node: "2", or "2 to 7" when the pool's nodes differ."""
    low, high = min(one.places for one in usable), max(one.places for one in usable)
    return f"{low:,}" if low == high else _("{low:,} to {high:,}", low=low, high=high)


def _sentence(fit: TierFit, maximum: int) -> str:
    usable, pool = fit.usable, fit.request.pool
    nodes = sum(one.shape.nodes for one in usable)
    total = sum(one.shape.nodes * one.places for one in usable)
    most = max(one.places for one in usable)
    places = ngettext("{places} place", "{places} places", most, places=_places(usable))
    if fit.seen:
        found = _(
            "{places} on a new node of the pool {pool}{as_seen}; it has none now.",
            places=places,
            pool=pool,
            as_seen=as_seen(fit.seen),
        )
        more = ngettext("The autoscaler may start one.", "The autoscaler may start up to {count:,}.", maximum)
        return f"{found} {more}"
    found = ngettext(
        "{places} on its only node of the pool {pool} when it is empty.",
        "{places} on each of {count:,} nodes of the pool {pool}, {total:,} in all when they are empty.",
        nodes,
        places=places,
        pool=pool,
        total=total,
    )
    if maximum > nodes:
        found += " " + _("The autoscaler may grow the pool to {nodes}.", nodes=plural(maximum, "node", "nodes"))
    return found


def _beside(request: TierRequest) -> str:
    if not request.beside:
        return ""
    more, part = words(request.beside, request.beside), part_beside(request.requests, request.beside)
    return _(
        "Each place has {more} more, for {sidecars}, which adds {part} to the price.",
        more=more,
        sidecars=beside_words(request),
        part=_percent(part) if part else _("nothing"),
    )


def _percent(part: Decimal) -> str:
    """Return a part in percent with at most one place, never "0 %" for what is more than nothing."""
    return f"{max(part * 100, Decimal('0.1')):.1f}".removesuffix(".0") + " %"


def _advice(fit: TierFit) -> tuple[str, ...]:
    if fit.best is None:
        return ()
    found = [_suggestion(one, fit) for one in fit.suggestions]
    if gpus := [name for name in fit.best.wastes if is_gpu(name) and not fit.request.requests.get(name)]:
        found.append(
            _(
                "It asks for no GPU, and a node full of it leaves {left} unused. Choose a pool without GPUs.",
                left=words(fit.best.left, gpus),
            )
        )
    return tuple(found)


def _suggestion(one: Suggestion, fit: TierFit) -> str:
    asked = fit.request.requests
    changed = [name for name in _SHOWN if one.requests.get(name) != asked.get(name)]
    sizes = _("With {requests} instead of {asked}", requests=words(one.requests, changed), asked=_were(asked, changed))
    if one.kind == "more":
        return _(
            "{sizes}, {places:,} would fit on a node instead of {before:,}.",
            sizes=sizes,
            places=one.places,
            before=one.places - 1,
        )
    return ngettext(
        "{sizes}, the one place would use nearly all {resources} of the node.",
        "{sizes}, the {count:,} places would use nearly all {resources} of the node.",
        one.places,
        sizes=sizes,
        resources=listed(_("CPU") if name == CPU else _("memory") for name in changed),
    )


def _short_advice(fit: TierFit) -> str:
    """Return the first advice for a table: "7.5 cores: 2 places instead of 1"."""
    if not fit.suggestions:
        return ""
    first = fit.suggestions[0]
    sizes = _short(
        first.requests, [name for name in _SHOWN if first.requests.get(name) != fit.request.requests.get(name)]
    )
    if first.kind == "more":
        return _(
            "{sizes}: {places} instead of {before:,}",
            sizes=sizes,
            places=plural(first.places, "place", "places"),
            before=first.places - 1,
        )
    return _("{sizes}: nearly all used", sizes=sizes)


def _short(room: Mapping[str, int], names: Iterable[str]) -> str:
    """Return the named amounts without the word memory: "1 core, 4 GiB"."""
    return ", ".join(number(name, room[name]) if name == MEMORY else words(room, [name]) for name in names)


def _were(asked: Mapping[str, int], changed: Sequence[str]) -> str:
    return listed(number(name, asked[name]) for name in changed)


def _overlap(found: Overlap) -> str:
    other = found.other
    if found.kind == "beaten":
        return _("{name} gives at least as much, for {price}.", name=other.name, price=price_words(other.price))
    return _("{name} has nearly the same size, at {price}.", name=other.name, price=price_words(other.price))
