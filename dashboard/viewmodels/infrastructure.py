"""The Infrastructure page: node pools, nodes, and what the autoscaler does; pure.

The page is filtered, sorted and cut into pages here, so that only rows that somebody sees are made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from dashboard.viewmodels.events import EventLine, event_line
from dashboard.viewmodels.format import percent
from dashboard.viewmodels.ids import element_id
from dashboard.viewmodels.listing import EmptyState, Paging
from dashboard.viewmodels.live import Fragment
from dashboard.viewmodels.nodes import NodeSums, Severity, Share, Status, created_at, instance_type, shares
from grid.diagnosis.requests import Amounts, total
from grid.diagnosis.scaledown import ScaleDown
from grid.kube.objects import Event
from grid.watch.pools import NodeGroup
from grid.wording import plural

ROWS_PER_PAGE = 50
TILES_PER_POOL = 40
EVENTS_SHOWN = 20
_FRAGMENTS = "dashboard/fragments/"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
STATES = {"": "Any state", "ready": "Ready", "trouble": "Not ready or in trouble", "removable": "Can be removed"}
SORTS = ("pool", "name", "type", "state", "created", "pods", "cpu", "memory")


@dataclass(frozen=True, slots=True)
class InfrastructureView:
    """What the URL asks for."""

    pool: str = ""
    text: str = ""
    state: str = ""
    sort: str = "pool"
    descending: bool = False
    page: int = 1

    @classmethod
    def parse(cls, query: Mapping[str, Any]) -> "InfrastructureView":
        """Nonsense means the default."""
        sort = str(query.get("sort", ""))
        page = str(query.get("page", ""))
        state = str(query.get("state", ""))
        return cls(
            pool=str(query.get("pool", ""))[:63],
            text=str(query.get("text", ""))[:100].strip(),
            state=state if state in STATES else "",
            sort=sort.removeprefix("-") if sort.removeprefix("-") in SORTS else "pool",
            descending=sort.startswith("-") and sort.removeprefix("-") in SORTS,
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 6 else 1,
        )

    def query(self, **changed: Any) -> str:
        """The query string of this view with something changed; only what is not the default."""
        new = replace(self, **changed)
        sort = ("-" if new.descending else "") + new.sort
        wanted = {"pool": new.pool, "text": new.text, "state": new.state}
        parts = {name: value for name, value in wanted.items() if value}
        if sort != "pool":
            parts["sort"] = sort
        if new.page > 1:
            parts["page"] = str(new.page)
        return "?" + urlencode(parts)


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    pool: str
    is_platform: bool
    instance_type: str
    status: Status
    created_at: datetime | None
    pod_count: int
    shares: tuple[Share, ...]
    has_metrics: bool
    scale_down: ScaleDown


@dataclass(frozen=True, slots=True)
class Tile:
    """One node as a small square, filled as far as it is requested, in tenths; `name` is "" for a node that may still come."""

    name: str
    severity: Severity
    tenths: int
    title: str


@dataclass(frozen=True, slots=True)
class PoolCard:
    name: str
    is_platform: bool
    sizes: str
    coming: str
    pending: str
    shares: tuple[Share, ...]
    has_metrics: bool
    tiles: tuple[Tile, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Totals:
    sentence: str


def pool_cards(sums: Sequence[NodeSums], groups: Mapping[str, NodeGroup], pending: Mapping[str, int]) -> list[Fragment]:
    """Compute pools by name, then platform pools, then nodes of no pool. Groups without nodes are pools of size 0."""
    by_pool: dict[str, list[NodeSums]] = {name: [] for name in (*groups, *pending)}
    for one in sums:
        by_pool.setdefault(one.pool, []).append(one)
    cards = [_pool_card(name, nodes, groups.get(name), pending.get(name, 0)) for name, nodes in by_pool.items()]
    cards.sort(key=lambda card: (not card.name, card.is_platform, card.name))
    return [
        Fragment(element_id("pool", card.name), f"{_FRAGMENTS}pool_card.html", card, region="pools") for card in cards
    ]


def totals(sums: Sequence[NodeSums]) -> Fragment:
    platform = sum(one.is_platform for one in sums)
    sentence = f"{plural(len(sums) - platform, 'compute node')} and {plural(platform, 'platform node')}"
    return Fragment("totals", f"{_FRAGMENTS}totals.html", Totals(sentence))


def node_rows(
    sums: Iterable[NodeSums], view: InfrastructureView, scale_down_of: Callable[[NodeSums], ScaleDown]
) -> list[Fragment]:
    """The page of rows that the view asks for, and the paging line."""
    wanted = [one for one in sums if _fits(one, view, scale_down_of)]
    wanted.sort(key=lambda one: one.node.metadata.name)
    if view.sort != "name" or view.descending:
        wanted.sort(key=_SORT_KEYS[view.sort], reverse=view.descending)
    last_page = max(1, -(-len(wanted) // ROWS_PER_PAGE))
    page = min(view.page, last_page)
    start = (page - 1) * ROWS_PER_PAGE
    shown = wanted[start : start + ROWS_PER_PAGE]
    rows = [_row_fragment(one, scale_down_of(one)) for one in shown] or [_no_rows(view)]
    sentence = plural(len(wanted), "node")
    if last_page > 1:
        sentence = f"{start + 1:,} to {start + len(shown):,} of {sentence}"
    paging = Paging(
        sentence,
        previous=view.query(page=page - 1) if page > 1 else "",
        next=view.query(page=page + 1) if page < last_page else "",
    )
    return [*rows, Fragment("nodes-paging", f"{_FRAGMENTS}paging.html", paging)]


def activity(events: Sequence[Event]) -> list[Fragment]:
    """The autoscaler's latest events, newest first; `events` come oldest first."""
    lines: list[EventLine] = [event_line(event) for event in reversed(events[-EVENTS_SHOWN:])]
    if not lines:
        empty = EmptyState("Nothing yet.", "Scale-ups and removals of nodes appear here as they happen.")
        return [Fragment("activity-none", f"{_FRAGMENTS}empty_item.html", empty, region="activity")]
    return [Fragment(line.id, f"{_FRAGMENTS}event_item.html", line, region="activity") for line in lines]


def node_row(one: NodeSums, scale_down: ScaleDown) -> NodeRow:
    return NodeRow(
        name=one.node.metadata.name,
        pool=one.pool,
        is_platform=one.is_platform,
        instance_type=instance_type(one.node),
        status=one.status,
        created_at=created_at(one.node),
        pod_count=one.pod_count,
        shares=shares(one.requested, one.allocatable, one.used),
        has_metrics=one.used is not None,
        scale_down=scale_down,
    )


def _row_fragment(one: NodeSums, scale_down: ScaleDown) -> Fragment:
    row = node_row(one, scale_down)
    return Fragment(element_id("node", row.name), f"{_FRAGMENTS}node_row.html", row, region="nodes")


def _no_rows(view: InfrastructureView) -> Fragment:
    if view == InfrastructureView(sort=view.sort, descending=view.descending, page=view.page):
        empty = EmptyState("No nodes.", "The cluster has none, or they have not been read yet.")
    else:
        empty = EmptyState("No node matches.", "Clear the filter to see all nodes.")
    return Fragment("nodes-none", f"{_FRAGMENTS}empty_row.html", empty, region="nodes")


def _fits(one: NodeSums, view: InfrastructureView, scale_down_of: Callable[[NodeSums], ScaleDown]) -> bool:
    if view.pool and one.pool != view.pool:
        return False
    if view.text and view.text.lower() not in f"{one.node.metadata.name} {one.pool} {instance_type(one.node)}".lower():
        return False
    if view.state == "ready":
        return one.status.word == "Ready"
    if view.state == "trouble":
        return one.status.severity in ("wait", "problem")
    if view.state == "removable":
        return scale_down_of(one).verdict in ("removing", "marked", "unneeded")
    return True


def _requested_share(one: NodeSums, of: Callable[[Amounts], int]) -> float:
    return of(one.requested) / (of(one.allocatable) or 1)


_SORT_KEYS: dict[str, Callable[[NodeSums], Any]] = {
    "pool": lambda one: (one.is_platform, not one.pool, one.pool),
    "name": lambda one: one.node.metadata.name,
    "type": lambda one: instance_type(one.node),
    "state": lambda one: (["problem", "wait", "neutral", "ok"].index(one.status.severity), one.status.word),
    "created": lambda one: created_at(one.node) or _LONG_AGO,
    "pods": lambda one: one.pod_count,
    "cpu": lambda one: _requested_share(one, lambda each: each.cpu),
    "memory": lambda one: _requested_share(one, lambda each: each.memory),
}


def _pool_card(name: str, nodes: list[NodeSums], group: NodeGroup | None, pending: int) -> PoolCard:
    nodes.sort(key=lambda one: (created_at(one.node) or _LONG_AGO, one.node.metadata.name))
    ready = sum(one.status.word == "Ready" for one in nodes)
    measured = [one.used for one in nodes if one.used is not None]
    coming = max(0, group.target - len(nodes)) if group else 0
    tiles = [_tile(one) for one in nodes[:TILES_PER_POOL]]
    free = min((group.maximum if group else 0) - len(nodes), TILES_PER_POOL - len(tiles))
    tiles += [
        Tile("", "wait" if place < coming else "neutral", 0, "on its way" if place < coming else "may still come")
        for place in range(free)
    ]
    return PoolCard(
        name=name,
        is_platform=bool(nodes) and all(one.is_platform for one in nodes),
        sizes=_sizes(len(nodes), ready, group),
        coming=f"{plural(coming, 'node')} on the way" if coming else "",
        pending=f"{plural(pending, 'pod')} waiting for a node" if pending else "",
        shares=shares(
            total(one.requested for one in nodes),
            total(one.allocatable for one in nodes),
            total(measured) if measured else None,
        )
        if nodes
        else (),
        has_metrics=bool(measured),
        tiles=tuple(tiles),
        more=max(0, len(nodes) - TILES_PER_POOL),
    )


def _sizes(count: int, ready: int, group: NodeGroup | None) -> str:
    text = plural(count, "node")
    if ready < count:
        text += f", {ready} ready"
    return f"{text}; {group.minimum} to {group.maximum} allowed" if group else f"{text}; fixed size"


def _tile(one: NodeSums) -> Tile:
    cpu = percent(one.requested.cpu, one.allocatable.cpu)
    memory = percent(one.requested.memory, one.allocatable.memory)
    gpus = percent(one.requested.gpus, one.allocatable.gpus)
    title = f"{one.node.metadata.name}: {one.status.word}, {max(cpu, memory, gpus)} % requested"
    return Tile(one.node.metadata.name, one.status.severity, -(-max(cpu, memory, gpus) // 10), title)
