"""What the tier doctor says on the admins' pages: nodes as bars filled with places, what stays unused, and advice; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dashboard.viewmodels.prices import price_words
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.nodeshapes import NodeShape
from grid.diagnosis.places import taint_text
from grid.diagnosis.tierdoctor import (
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
from grid.diagnosis.tieroverlap import Overlap
from grid.quantity import format_bytes, format_cores
from grid.wording import listed, plural

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
        return f"{plural(self.number, 'running execution')} would no longer fit"

    @property
    def more(self) -> int:
        return self.number - len(self.named)


_FITS = {
    "too_large": "too large for its nodes",
    "no_room_beside": "not with what stands beside",
    "tainted": "taint not tolerated",
    "away": "no node takes it now",
    "pool_empty": "no node now",
    "no_nodes": "no nodes",
}


def tier_check(fit: TierFit, overlap: Overlap | None, *, maximum_nodes: int) -> TierCheck:
    """Return the finding in words; `maximum_nodes` is how far the autoscaler may grow the pool, 0 when it does not know the pool."""
    shapes = tuple(_shape(group) for group in _alike(_in_order(fit)))
    sentence, places, fits = "", "", "fits, when last seen" if fit.seen else "fits"
    if fit.best is not None:
        places, sentence = _places(fit.usable), f"{_sentence(fit, maximum_nodes)}{_beside(fit.request)}"
    return TierCheck(
        severity=fit.problem.severity if fit.problem else "ok",
        fits=_FITS.get(fit.problem.code, "does not fit") if fit.problem else fits,
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
    keeps, again = (
        ("It keeps its node", "it finds no place") if running == 1 else ("They keep their nodes", "they find no place")
    )
    return f"{plural(running, 'execution runs', 'executions run')} on this tier now. {keeps}; launched again on these values, {again}."


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
        nodes=plural(nodes or away, "node") if nodes or away else "a new node",
        size=_size(first.shape),
        places=_places_words(first),
        unused=_unused(first),
        bars=_bars(first),
        away=f"{plural(away, 'more node') + ' ' if nodes else ''}cordoned, not ready or being removed" if away else "",
        taints=listed(map(taint_text, first.untolerated)) if first.untolerated else "",
    )


def _places_words(packing: Packing) -> str:
    if not packing.places:
        return "no place"
    return f"{plural(packing.places, 'place')}{' without the taint' if packing.untolerated else ''}"


def _size(shape: NodeShape) -> str:
    """Return the size of the node, such as "8 cores, 31 GiB, 1 GPU"."""
    amounts = shape.allocatable
    parts = [f"{format_cores(amounts.get(CPU, 0))} cores", format_bytes(amounts.get(MEMORY, 0))]
    gpus = sum(amount for name, amount in amounts.items() if is_gpu(name))
    return ", ".join([*parts, *([plural(gpus, "GPU")] if gpus else [])])


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
    label = "CPU" if name == CPU else "Memory" if name == MEMORY else "GPUs"
    free = packing.shape.free[name]
    return PackedBar(label, f"{number(name, used)} of {number(name, free)}", tuple(pieces), name in packing.binding)


def _places(usable: Sequence[Packing]) -> str:
    """Return the places on a node: "2", or "2 to 7" when the pool's nodes differ."""
    low, high = min(one.places for one in usable), max(one.places for one in usable)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _sentence(fit: TierFit, maximum: int) -> str:
    usable, pool = fit.usable, fit.request.pool
    nodes = sum(one.shape.nodes for one in usable)
    total = sum(one.shape.nodes * one.places for one in usable)
    found = f"{_places(usable)} {'place' if _places(usable) == '1' else 'places'}"
    if fit.seen:
        found += f" on a new node of the pool {pool}{as_seen(fit.seen)}; it has none now."
        return f"{found} The autoscaler may start {'one' if maximum == 1 else f'up to {maximum:,}'}."
    found += f" {'on its only node' if nodes == 1 else f'on each of {nodes:,} nodes'} of the pool {pool}"
    found += f", {total:,} in all when they are empty." if nodes > 1 else " when it is empty."
    if maximum > nodes:
        found += f" The autoscaler may grow the pool to {plural(maximum, 'node')}."
    return found


def _beside(request: TierRequest) -> str:
    if not request.beside:
        return ""
    return (
        f" Each place has {words(request.beside, request.beside)} more, for {beside_words(request)}; it has no price."
    )


def _advice(fit: TierFit) -> tuple[str, ...]:
    if fit.best is None:
        return ()
    found = [_suggestion(one, fit) for one in fit.suggestions]
    if gpus := [name for name in fit.best.wastes if is_gpu(name) and not fit.request.requests.get(name)]:
        found.append(
            f"It asks for no GPU, and a node full of it leaves {words(fit.best.left, gpus)} unused. Choose a pool without GPUs."
        )
    return tuple(found)


def _suggestion(one: Suggestion, fit: TierFit) -> str:
    asked = fit.request.requests
    changed = [name for name in _SHOWN if one.requests.get(name) != asked.get(name)]
    sizes = f"With {words(one.requests, changed)} instead of {_were(asked, changed)}"
    if one.kind == "more":
        return f"{sizes}, {one.places:,} would fit on a node instead of {one.places - 1:,}."
    many = "the one place" if one.places == 1 else f"the {one.places:,} places"
    resources = listed("CPU" if name == CPU else "memory" for name in changed)
    return f"{sizes}, {many} would use nearly all {resources} of the node."


def _short_advice(fit: TierFit) -> str:
    """Return the first advice for a table: "7.5 cores: 2 places instead of 1"."""
    if not fit.suggestions:
        return ""
    first = fit.suggestions[0]
    sizes = _short(
        first.requests, [name for name in _SHOWN if first.requests.get(name) != fit.request.requests.get(name)]
    )
    if first.kind == "more":
        return f"{sizes}: {plural(first.places, 'place')} instead of {first.places - 1:,}"
    return f"{sizes}: nearly all used"


def _short(room: Mapping[str, int], names: Iterable[str]) -> str:
    """Return the named amounts without the word memory: "1 core, 4 GiB"."""
    return ", ".join(words(room, [name]).removesuffix(" of memory") for name in names)


def _were(asked: Mapping[str, int], changed: Sequence[str]) -> str:
    return listed(number(name, asked[name]) for name in changed)


def _overlap(found: Overlap) -> str:
    other = found.other
    if found.kind == "beaten":
        return f"{other.name} gives at least as much, for {price_words(other.price)}."
    return f"{other.name} has nearly the same size, at {price_words(other.price)}."
