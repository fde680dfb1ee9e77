"""The overview: waiting and failing work, pools with the autoscaler's part, and nodes as cells of a picture: one cell for each, in chunks
that are sent again only when one of their cells looks different; pure. A cell shows its node's requested share in steps, so most changes
of a node change no cell. A pool's chunks are in the order of age, and a node that comes or goes changes one of them."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Literal

from dashboard.executions.viewmodels.execution_groups import Group
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.nodes.viewmodels.nodes import NodeSums
from dashboard.nodes.viewmodels.pools import PoolSums
from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from dashboard.shell.viewmodels.states import STATES, StatusLine, kind_name, state_status
from grid.core.labels import TO_BE_DELETED_TAINT
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed, plural
from grid.diagnosis.requests import Amounts
from grid.kube.pools import NodeGroup
from grid.runtime.executionrows import ExecutionRow

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
    is_marked = any(taint.key == TO_BE_DELETED_TAINT for taint in node.spec.taints)
    if node.metadata.deletion_timestamp is not None or is_marked:
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
        cells = tuple(self._cells[name] for _, name in chunk.positions)
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


@dataclass(eq=False, slots=True)
class _Chunk:
    number: int
    positions: list[_Position]  # in order
    fragment: Fragment | None = None


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


WORST_SHOWN, FAILED_SHOWN, REASONS_SHOWN = 5, 3, 3

_QUEUE_REASONS = {
    "over_user_slots": _("All slots of the owner are in use."),
    "over_tier_maximum": _("The tier is at its limit of executions."),
    "maintenance": _("Maintenance: nothing is launched."),
    "taken_over": _("An operator decides by hand what starts."),
    "over_budget": _("The budget of its project is used up."),
    "larger_than_limit": _("It needs more slots than one user may hold."),
}

TROUBLE, QUEUED, DEPLOYING, PREPARING = (  # oldest first
    ExecutionsView(status=status, descending=True) for status in ("trouble", "queued", "deploying", "preparing")
)


# --- Work ---


class WorkCount(ViewModel, frozen=True, gc=False):
    title: str
    count: str
    severity: Literal["ok", "wait", "problem", "neutral"]
    query: str


class WorkCounts(ViewModel, frozen=True, gc=False):
    counts: tuple[WorkCount, ...]
    note: str = ""


def work_counts(
    *, active: int, trouble: int, queued: int, deploying: int, preparing: int, failed: int, is_whole: bool
) -> Fragment:
    counts = (
        WorkCount(_("In trouble"), f"{trouble:,}", "problem" if trouble else "neutral", TROUBLE.query()),
        WorkCount(_("Failed in the last hour"), f"{failed:,}", "problem" if failed else "neutral", "?show=ended"),
        WorkCount(_("Queued"), f"{queued:,}", "wait" if queued else "neutral", QUEUED.query()),
        WorkCount(STATES["deploying"], f"{deploying:,}", "wait" if deploying else "neutral", DEPLOYING.query()),
        WorkCount(STATES["preparing"], f"{preparing:,}", "wait" if preparing else "neutral", PREPARING.query()),
        WorkCount(_("Active"), f"{active:,}", "neutral", ExecutionsView().query()),
    )
    note = "" if any((trouble, failed, queued, deploying, preparing)) else _("Nothing is waiting or failing.")
    note = note if is_whole else _("The executions are still being counted.")
    return Fragment("work-counts", "nodes/fragments/overview_counts.html", WorkCounts(counts, note))


class WorkLine(ViewModel, frozen=True, gc=False):
    """An execution that waits or fails, with the reason in a sentence. `pod` is of an orphan, which has no page as an execution."""

    name: str
    about: str
    status: StatusLine
    since: datetime | None
    execution_id: str = ""
    pod_namespace: str = ""
    pod_name: str = ""
    has_ended: bool = False  # at `since`


class WaitingPlace(ViewModel, frozen=True, gc=False):
    """What waits in one place: how many executions, the one that waits longest, and the reasons with how many have each."""

    title: str
    sentence: str
    query: str
    oldest: WorkLine
    reasons: tuple[str, ...] = ()
    expected: str = ""  # of the oldest


def work_line(group: Group, status: StatusLine) -> WorkLine:
    """Return the line of a group of which `status` is that of its first entry."""
    head, first = group.head, group.entries[0]
    pod = first.pod.metadata if head.row is None and first.pod is not None else None
    more = f", {plural(len(group.entries), 'pod', 'pods')}" if len(group.entries) > 1 else ""
    return WorkLine(
        execution_id=head.execution_id if head.row is not None else "",
        pod_namespace=pod.namespace if pod else "",
        pod_name=pod.name if pod else "",
        name=head.name or head.execution_id,
        about=", ".join(filter(None, (head.part or kind_name(head.kind), head.user, head.project))) + more,
        status=status,
        since=first.since,
    )


def failed_line(row: ExecutionRow) -> WorkLine:
    status, _advice = state_status(row.state, message=row.words(to_owner=False))
    about = ", ".join((kind_name(row.kind), row.owner_username, row.project_name))
    return WorkLine(row.title or row.object_name, about, status, row.ended_at, row.id, has_ended=True)


def work_lines(region: str, lines: Iterable[WorkLine]) -> list[Fragment]:
    template = "nodes/fragments/overview_work.html"
    return [
        Fragment(element_id(region, line.execution_id or line.pod_name), template, line, region=region)
        for line in lines
    ]


def queue_reason(row: ExecutionRow) -> str:
    """Return why an execution is queued, in words that are the same for many."""
    return _QUEUE_REASONS.get(row.reason) or row.words(to_owner=False)


def waiting(
    title: str, view: ExecutionsView, count: int, oldest: WorkLine, reasons: Collection[str] = (), *, expected: str = ""
) -> WaitingPlace:
    """Return what waits in one place. `reasons` are those of the executions that wait longest, one for each."""
    counts = Counter(reasons).most_common(REASONS_SHOWN)
    words = tuple(f"{times:,} × {reason}" if len(counts) > 1 else reason for reason, times in counts if reason)
    return WaitingPlace(title, plural(count, "execution", "executions"), view.query(), oldest, words, expected)


def waiting_lines(lines: Iterable[WaitingPlace]) -> list[Fragment]:
    template = "nodes/fragments/overview_waiting.html"
    return [Fragment(element_id("waiting", line.title), template, line, region="waiting") for line in lines]


# --- Nodes and the autoscaler ---


class NodesSummary(ViewModel, frozen=True, gc=False):
    sentence: str
    density: str


class PoolHead(ViewModel, frozen=True, gc=False):
    """A pool in a sentence, above its cells. `autoscaler` says what may be added, `pending` what waits for that."""

    name: str
    is_platform: bool
    sentence: str
    autoscaler: str
    is_growing: bool
    pending: str


def nodes_summary(pools: Collection[PoolSums], *, is_whole: bool) -> Fragment:
    nodes, platform = sum(map(len, pools)), sum(pool.platform for pool in pools)
    sentence = _(
        "{nodes} in {pools}",
        nodes=plural(nodes - platform, "compute node", "compute nodes"),
        pools=plural(sum(not pool.is_platform for pool in pools), "pool", "pools"),
    )
    if platform:
        others = plural(platform, "platform node", "platform nodes")
        sentence = _("{compute_nodes}, and {platform_nodes}", compute_nodes=sentence, platform_nodes=others)
    if not is_whole:
        sentence = _("{nodes} counted so far", nodes=plural(nodes, "node", "nodes"))
    return Fragment("nodes-summary", "nodes/fragments/overview_nodes.html", NodesSummary(sentence, density(nodes)))


def pool_fragments(
    name: str, pool: PoolSums | None, group: NodeGroup | None, pending: int, cells: CellMap
) -> list[Fragment]:
    """Return the pool's head and its cells; `pool` is None while it has no node."""
    count = len(pool) if pool is not None else 0
    coming = max(0, group.target - count) if group is not None else 0
    waits = ngettext("{count:,} pod waits for a node", "{count:,} pods wait for a node", pending)
    head = PoolHead(
        name=name,
        is_platform=pool is not None and pool.is_platform,
        sentence=_pool_sentence(pool, cells) if pool is not None else _("No node now."),
        autoscaler=_autoscaler_sentence(group, coming),
        is_growing=coming > 0,
        pending=waits if pending else "",
    )
    fragment = Fragment(element_id("head", name), "nodes/fragments/overview_pool.html", head, region=REGION)
    return [fragment, *cells.fragments()]


def _pool_sentence(pool: PoolSums, cells: CellMap) -> str:
    shares = [
        _("{cpu} % of CPU", cpu=percent(pool.requested.cpu, pool.allocatable.cpu)),
        _("{memory} % of memory", memory=percent(pool.requested.memory, pool.allocatable.memory)),
    ]
    if pool.allocatable.gpus:
        shares.append(_("{gpus} % of GPUs", gpus=percent(pool.requested.gpus, pool.allocatable.gpus)))
    busy = [f"{cells.states[state]:,} {word}" for state, word in _STATES.items() if cells.states[state]]
    nodes = ", ".join([plural(len(pool), "node", "nodes"), *busy])
    return _("{nodes}. {shares} requested.", nodes=nodes, shares=listed(shares))


def _autoscaler_sentence(group: NodeGroup | None, coming: int) -> str:
    if group is None:
        return _("Fixed size")
    words = _("Autoscaler: {minimum:,} to {maximum:,} nodes", minimum=group.minimum, maximum=group.maximum)
    if coming:
        return _("{limits}, {coming:,} on the way", limits=words, coming=coming)
    return _("{limits}, at its maximum", limits=words) if group.target >= group.maximum else words
