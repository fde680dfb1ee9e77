"""What the tier doctor says on the admins' pages: nodes as bars filled with places, what stays unused, and advice; pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

from dashboard.shell.viewmodels.live import ViewModel
from dashboard.usage.viewmodels.usage import price_words
from grid.core.quantity import format_bytes, format_cores, is_gpu
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed, plural
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.nodeshapes import NodeShape
from grid.diagnosis.places import taint_text
from grid.executions.prices import part_beside
from grid.tiers.tierdoctor import (
    CPU,
    MEMORY,
    Overlap,
    Packing,
    Suggestion,
    TierFit,
    TierRequest,
    as_seen,
    beside_words,
    number,
    words,
)

_WIDTH = 1000  # of a bar's picture
_GAP = 6
MOST_NAMED = 5  # executions of a tier that would no longer fit
_SEPARATE = 24  # more places are drawn as one
_SHOWN = (CPU, MEMORY)


class Piece(ViewModel, frozen=True, gc=False):
    """A piece of a bar: "own" of the node's own pods, "place" of one execution; what is left of the bar is unused."""

    kind: str
    x: int
    width: int


class PackedBar(ViewModel, frozen=True, gc=False):
    """One resource of a node: how much of it the places use, in words and as a picture."""

    label: str
    text: str
    pieces: tuple[Piece, ...]
    is_binding: bool


class PackedShape(ViewModel, frozen=True, gc=False):
    """Nodes that are alike, each filled with the tier's executions; `away` and `taints` say why some take none."""

    nodes: str
    size: str
    places: str
    unused: str
    bars: tuple[PackedBar, ...]
    away: str
    taints: str


class TierCheck(ViewModel, frozen=True, gc=False):
    """The doctor's words about one tier: `fits` for a table, `sentence` for its own page. `overlap` is about the tier `rival_id`."""

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
        bars = self.shapes[0].bars if self.shapes and self.problem is None else ()
        return next((bar for bar in bars if bar.is_binding), bars[0] if bars else None)


class Outgrown(ViewModel, frozen=True, gc=False):
    """The running executions of one tier that not even an empty node would take again: their number, and the names of the oldest by id."""

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
    order = sorted(fit.packings, key=lambda packing: (packing is not fit.best, not packing.takes, -packing.shape.nodes))
    shapes = tuple(_shape(group) for group in _alike(order))
    fits = _("fits, when last seen") if fit.seen else _("fits")
    has_best = fit.best is not None
    return TierCheck(
        severity=fit.problem.severity if fit.problem else "ok",
        fits=_FITS.get(fit.problem.code, _("does not fit")) if fit.problem else fits,
        sentence=f"{_sentence(fit, maximum_nodes)} {_beside(fit.request)}".rstrip() if has_best else "",
        problem=fit.problem,
        places=_places(fit.usable) if has_best else "",
        unused=_short(fit.best.left, fit.best.wastes) if fit.best is not None else "",
        shapes=shapes,
        advice=_advice(fit),
        short_advice=_short_advice(fit),
        overlap=_overlap(overlap) if overlap else "",
        rival_id=overlap.other.id if overlap else "",
    )


def relaunch_sentence(running: int) -> str:
    """Return what a tier that fits no node means for the executions that run on it; "" when none does."""
    sentence = ngettext(
        "{count:,} execution runs on this tier now. It keeps its node; launched again on these values, it finds no place.",
        "{count:,} executions run on this tier now. They keep their nodes; launched again on these values, they find no place.",
        running,
    )
    return sentence if running else ""


def _alike(packings: Iterable[Packing]) -> list[list[Packing]]:
    """Group shapes that a reader cannot tell apart: machines of one type differ by some KiB of memory."""
    groups = defaultdict[tuple[object, ...], list[Packing]](list)
    for packing in packings:
        taints = tuple(map(taint_text, packing.untolerated))
        groups[_size(packing.shape), packing.places, packing.binding, _unused(packing), taints].append(packing)
    return list(groups.values())


def _shape(group: Sequence[Packing]) -> PackedShape:
    first, nodes = group[0], sum(packing.shape.nodes for packing in group)
    away = sum(packing.shape.away for packing in group)
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
    names = [name for name, amount in shape.allocatable.items() if amount and (name in _SHOWN or is_gpu(name))]
    return tuple(_bar(packing, name) for name in sorted(names, key=lambda name: (is_gpu(name), name)))


def _bar(packing: Packing, name: str) -> PackedBar:
    whole, free = packing.shape.allocatable[name], packing.shape.free[name]
    own, used = whole - free, free - packing.left[name]
    pieces, each = [], used / packing.places if packing.places else 0.0
    if own:
        pieces.append(Piece("own", 0, max(1, round(_WIDTH * own / whole))))
    if used and packing.places <= _SEPARATE:
        edges = [round(_WIDTH * (own + each * place) / whole) for place in range(packing.places + 1)]
        pieces += [Piece("place", start, max(1, end - start - _GAP)) for start, end in pairwise(edges)]
    elif used:
        pieces.append(Piece("place", round(_WIDTH * own / whole), max(1, round(_WIDTH * used / whole))))
    label = _("CPU") if name == CPU else _("Memory") if name == MEMORY else _("GPUs")
    text = _("{used} of {free}", used=number(name, used), free=number(name, free))
    return PackedBar(label, text, tuple(pieces), name in packing.binding)


def _places(usable: Sequence[Packing]) -> str:
    """Return the places on a node: "2", or "2 to 7" when the pool's nodes differ."""
    places = [packing.places for packing in usable]
    low, high = min(places), max(places)
    return f"{low:,}" if low == high else _("{low:,} to {high:,}", low=low, high=high)


def _sentence(fit: TierFit, maximum: int) -> str:
    usable, pool = fit.usable, fit.request.pool
    nodes = sum(packing.shape.nodes for packing in usable)
    total = sum(packing.shape.nodes * packing.places for packing in usable)
    most = max(packing.places for packing in usable)
    places = ngettext("{places} place", "{places} places", most, places=_places(usable))
    if fit.seen:
        where = {"places": places, "pool": pool, "as_seen": as_seen(fit.seen)}
        new = _("{places} on a new node of the pool {pool}{as_seen}; it has none now.", **where)
        more = ngettext("The autoscaler may start one.", "The autoscaler may start up to {count:,}.", maximum)
        return f"{new} {more}"
    sentence = ngettext(
        "{places} on its only node of the pool {pool} when it is empty.",
        "{places} on each of {count:,} nodes of the pool {pool}, {total:,} in all when they are empty.",
        nodes,
        places=places,
        pool=pool,
        total=total,
    )
    if maximum > nodes:
        sentence += " " + _("The autoscaler may grow the pool to {nodes}.", nodes=plural(maximum, "node", "nodes"))
    return sentence


def _beside(request: TierRequest) -> str:
    if not request.sidecar_requests:
        return ""
    part = part_beside(request.requests, request.sidecar_requests)
    return _(
        "Each place has {more} more, for {sidecars}, which adds {part} to the price.",
        more=words(request.sidecar_requests, request.sidecar_requests),
        sidecars=beside_words(request),
        part=_percent(part) if part else _("nothing"),
    )


def _percent(part: Decimal) -> str:
    """Return a part in percent with at most one place, never "0 %" for what is more than nothing."""
    return f"{max(part * 100, Decimal('0.1')):.1f}".removesuffix(".0") + " %"


def _advice(fit: TierFit) -> tuple[str, ...]:
    if fit.best is None:
        return ()
    advice = [_suggestion(suggestion, fit) for suggestion in fit.suggestions]
    if gpus := [name for name in fit.best.wastes if is_gpu(name) and not fit.request.requests.get(name)]:
        left = words(fit.best.left, gpus)
        advice.append(
            _("It asks for no GPU, and a node full of it leaves {left} unused. Choose a pool without GPUs.", left=left)
        )
    return tuple(advice)


def _changed(suggestion: Suggestion, fit: TierFit) -> list[str]:
    return [name for name in _SHOWN if suggestion.requests.get(name) != fit.request.requests.get(name)]


def _suggestion(suggestion: Suggestion, fit: TierFit) -> str:
    changed, places = _changed(suggestion, fit), suggestion.places
    asked = listed(number(name, fit.request.requests[name]) for name in changed)
    sizes = _("With {requests} instead of {asked}", requests=words(suggestion.requests, changed), asked=asked)
    if suggestion.kind == "more":
        numbers = {"places": places, "before": places - 1}
        return _("{sizes}, {places:,} would fit on a node instead of {before:,}.", sizes=sizes, **numbers)
    return ngettext(
        "{sizes}, the one place would use nearly all {resources} of the node.",
        "{sizes}, the {count:,} places would use nearly all {resources} of the node.",
        places,
        sizes=sizes,
        resources=listed(_("CPU") if name == CPU else _("memory") for name in changed),
    )


def _short_advice(fit: TierFit) -> str:
    """Return the first advice for a table: "7.5 cores: 2 places instead of 1"."""
    if not fit.suggestions:
        return ""
    first = fit.suggestions[0]
    sizes, places = _short(first.requests, _changed(first, fit)), plural(first.places, "place", "places")
    if first.kind == "more":
        return _("{sizes}: {places} instead of {before:,}", sizes=sizes, places=places, before=first.places - 1)
    return _("{sizes}: nearly all used", sizes=sizes)


def _short(room: Mapping[str, int], names: Iterable[str]) -> str:
    """Return the named amounts without the word memory: "1 core, 4 GiB"."""
    return ", ".join(number(name, room[name]) if name == MEMORY else words(room, [name]) for name in names)


def _overlap(overlap: Overlap) -> str:
    values = {"name": overlap.other.name, "price": price_words(overlap.other.price)}
    if overlap.kind == "beaten":
        return _("{name} gives at least as much, for {price}.", **values)
    return _("{name} has nearly the same size, at {price}.", **values)
