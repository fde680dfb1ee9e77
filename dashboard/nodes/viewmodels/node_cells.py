"""Nodes as cells of a picture: one cell for each node, in chunks that are sent again only when one of their cells looks different; pure. A
cell shows its node's requested share in steps, so most changes of a node change no cell. A pool's chunks are in the order of age, and a
node that comes or goes changes one of them."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Literal

from dashboard.nodes.viewmodels.nodes import NodeSums
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from grid.core.labels import TO_BE_DELETED_TAINT
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.requests import Amounts

REGION = "pool-map"
CELLS_PER_CHUNK = 25  # after which it is split into two: a change of one cell sends so many at most
STEPS = (_("up to 20 %"), _("20 to 40 %"), _("40 to 60 %"), _("60 to 80 %"), _("over 80 %"))
_STEP_PERCENT = 20
CellState = Literal["", "closed", "leaving", "unready", "problem"]
_Position = tuple[datetime, str]
_STATES: Mapping[CellState, str] = {
    "problem": _("in trouble"),
    "unready": _("not ready"),
    "closed": _("cordoned"),
    "leaving": _("being removed"),
}


class NodeCell(ViewModel, frozen=True, gc=False):
    """A node. `step` is the place of its share in `STEPS`, `state` is "" for a node that takes pods."""

    name: str
    step: int
    state: CellState
    title: str


class NodeChunk(ViewModel, frozen=True, gc=False):
    cells: tuple[NodeCell, ...]


def cell_of(sums: NodeSums) -> NodeCell:
    step, state = max(0, min(len(STEPS) - 1, (sums.requested_percent - 1) // _STEP_PERCENT)), state_of(sums)
    title = _(
        "{node}: {state}; {size}; {share} requested",
        node=sums.name,
        state=_STATES[state] if state in ("leaving", "closed") else sums.status.word.lower(),
        size=_size(sums.allocatable),
        share=STEPS[step],
    )
    return NodeCell(sums.name, step, state, title)


def state_of(sums: NodeSums) -> CellState:
    node = sums.node
    if sums.status.severity == "problem":
        return "problem"
    if node.metadata.deletion_timestamp is not None or any(
        taint.key == TO_BE_DELETED_TAINT for taint in node.spec.taints
    ):
        return "leaving"
    if sums.status.severity == "wait":
        return "unready"
    return "closed" if node.spec.unschedulable else ""


@lru_cache(maxsize=1000)
def _size(allocatable: Amounts) -> str:
    size = _("{cpu} cores, {memory}", cpu=format_cores(allocatable.cpu), memory=format_bytes(allocatable.memory))
    return f"{size}, {plural(allocatable.gpus, 'GPU', 'GPUs')}" if allocatable.gpus else size


class CellMap:
    """The cells of one pool. `states` counts its nodes by state."""

    def __init__(self, pool: str) -> None:
        self.states: Counter[CellState] = Counter()
        self._pool = pool
        self._cells: dict[str, NodeCell] = {}
        self._chunks: list[_Chunk] = []
        self._numbers = count(1)

    def __len__(self) -> int:
        return len(self._cells)

    def put(self, sums: NodeSums) -> None:
        """Add the node, or show it as it is now."""
        cell = cell_of(sums)
        old = self._cells.get(cell.name)
        if old == cell:
            return
        if old is not None:
            self.states[old.state] -= 1
        self.states[cell.state] += 1
        self._cells[cell.name] = cell
        position = sums.by_age
        chunk = self._chunk_of(position)
        chunk.fragment = None
        if old is None:
            chunk.positions.insert(bisect_right(chunk.positions, position), position)
            if len(chunk.positions) > CELLS_PER_CHUNK:
                self._split(chunk)

    def take_away(self, sums: NodeSums) -> None:
        position = sums.by_age
        self.states[self._cells.pop(sums.name).state] -= 1
        chunk = self._chunk_of(position)
        chunk.fragment = None
        chunk.positions.remove(position)
        if not chunk.positions:
            self._chunks.remove(chunk)

    def fragments(self) -> list[Fragment]:
        """Return the chunks for the region; those without a change are the same objects as before."""
        return [chunk.fragment or self._made(chunk) for chunk in self._chunks]

    def _made(self, chunk: "_Chunk") -> Fragment:
        cells = NodeChunk(tuple(self._cells[name] for _, name in chunk.positions))
        id = element_id("cells", self._pool, str(chunk.number))
        chunk.fragment = Fragment(id, "nodes/fragments/node_cells.html", cells, region=REGION)
        return chunk.fragment

    def _chunk_of(self, position: _Position) -> "_Chunk":
        if not self._chunks:
            self._chunks.append(_Chunk(next(self._numbers), []))
        after = bisect_right(
            self._chunks, position, key=lambda chunk: chunk.positions[0] if chunk.positions else position
        )
        return self._chunks[max(0, after - 1)]

    def _split(self, chunk: "_Chunk") -> None:
        # Most new nodes are the newest of their pool: then all but the last stay where they are.
        is_last = chunk is self._chunks[-1]
        middle = len(chunk.positions) - 1 if is_last else len(chunk.positions) // 2
        chunk.positions, rest = chunk.positions[:middle], chunk.positions[middle:]
        self._chunks.insert(self._chunks.index(chunk) + 1, _Chunk(next(self._numbers), rest))


class _Chunk:
    __slots__ = ("fragment", "number", "positions")

    def __init__(self, number: int, positions: list[_Position]) -> None:
        self.number = number
        self.positions = positions  # in order
        self.fragment: Fragment | None = None


class CellMaps:
    def __init__(self) -> None:
        self._maps: dict[str, CellMap] = {}

    def replace(self, old: NodeSums | None, new: NodeSums | None) -> None:
        """Show a node that was `old` as `new`; None for a node that was not there, or is not any more."""
        if old is not None and (new is None or (old.pool, old.by_age) != (new.pool, new.by_age)):
            self._maps[old.pool].take_away(old)
            if not len(self._maps[old.pool]):
                del self._maps[old.pool]
        if new is not None:
            self._maps.setdefault(new.pool, CellMap(new.pool)).put(new)

    def of(self, pool: str) -> CellMap:
        return self._maps.get(pool) or CellMap(pool)


def density(nodes: int) -> str:
    """Return how small the cells are, so that all nodes stay at one look."""
    return next((name for name, most in (("large", 60), ("medium", 400), ("small", 1500)) if nodes <= most), "tiny")


def states_words(states: Counter[CellState]) -> Iterable[str]:
    """Yield what is to be said of nodes that do not just take pods."""
    return (f"{states[state]:,} {word}" for state, word in _STATES.items() if states[state])
