"""The nodes of the Infrastructure page; pure. The list is kept in order while it changes (`window`), and only rows that are shown are put
into words. Pools are in `pools`, what the autoscaler does in `activity`."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import urlencode
from zlib import crc32

import msgspec

from dashboard.nodes.viewmodels.nodes import NodeSums, Share, shares
from dashboard.nodes.viewmodels.pool_history import DEFAULT_RANGE, range_of
from dashboard.shell.viewmodels.events import headline_of
from dashboard.shell.viewmodels.listing import EmptyState, FilterChip, Paging, Progress, none_so_far, unfinished
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from dashboard.shell.viewmodels.saved_views import ViewedTable
from dashboard.shell.viewmodels.states import StatusLine
from dashboard.shell.viewmodels.window import OrderedWindow, Page
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.kube.objects import Event
from grid.metrics.usage import UsageSample
from grid.nodes.scaledown import ScaleDown

ROWS_PER_PAGE = 50
PAGING = "nodes-paging"
REGION, EVENTS_READ, LINES_SHOWN = "activity", 200, 20  # of the autoscaler's activity
NAMED = 3  # objects of a line that are named; the others are counted
STATES = {
    "": _("Any state"),
    "ready": _("Ready"),
    "trouble": _("Not ready or in trouble"),
    "removable": _("Can be removed"),
}


class InfrastructureView(ViewModel, frozen=True, gc=False):
    pool: str = ""
    text: str = ""
    state: str = ""
    sort: str = "pool"
    descending: bool = False
    page: int = 1
    range: str = DEFAULT_RANGE  # of the charts

    @classmethod
    def parse(cls, query: Mapping[str, Any]) -> "InfrastructureView":
        """Parse the query; an invalid value means the default."""
        sort, page = str(query.get("sort", "")), str(query.get("page", ""))
        state, is_sort = str(query.get("state", "")), sort.removeprefix("-") in _SORT_KEYS
        return cls(
            pool=str(query.get("pool", "")).replace("\0", "")[:63],
            text=str(query.get("text", "")).replace("\0", "")[:100].strip(),
            state=state if state in STATES else "",
            sort=sort.removeprefix("-") if is_sort else "pool",
            descending=sort.startswith("-") and is_sort,
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 6 else 1,
            range=range_of(str(query.get("range", ""))),
        )

    def query(self, **changed: Any) -> str:
        """Return the query string of this view with the changes. Defaults are left out, but where all of them are, the order is said: the
        page without any parameter may open with a saved view."""
        new = msgspec.structs.replace(self, **changed)
        sort = ("-" if new.descending else "") + new.sort
        wanted = {"pool": new.pool, "text": new.text, "state": new.state}
        parts = {name: value for name, value in wanted.items() if value}
        if sort != "pool" or (new.page == 1 and not parts):
            parts["sort"] = sort
        if new.page > 1:
            parts["page"] = str(new.page)
        if new.range != DEFAULT_RANGE:
            parts["range"] = new.range
        return "?" + urlencode(parts)

    @property
    def cleared(self) -> str:
        return self.query(pool="", text="", state="", page=1)


def node_chips(view: InfrastructureView) -> tuple[FilterChip, ...]:
    """Return the view's conditions, each with the way to drop it alone."""
    words = {
        "text": f"“{view.text}”",
        "pool": _("Pool: {pool}", pool=view.pool),
        "state": _("State: {state}", state=STATES[view.state]),
    }
    return tuple(
        FilterChip(text, view.query(**{name: "", "page": 1})) for name, text in words.items() if getattr(view, name)
    )


class NodeRow(ViewModel, frozen=True, gc=False):
    name: str
    pool: str
    is_platform: bool
    instance_type: str
    status: StatusLine
    created_at: datetime | None
    pod_count: int
    shares: tuple[Share, ...]
    has_metrics: bool
    scale_down: ScaleDown


def window_of(view: InfrastructureView) -> OrderedWindow[NodeSums]:
    """Return an empty list in the view's order; equal nodes are ordered by name."""
    column = _SORT_KEYS[view.sort]
    return OrderedWindow(sort_key=lambda sums: (column(sums), sums.name), is_reversed=view.descending)


def node_rows(
    window: OrderedWindow[NodeSums],
    page: Page[NodeSums],
    view: InfrastructureView,
    row_of: Callable[[NodeSums], Fragment],
    progress: Progress | None = None,
) -> list[Fragment]:
    """Return the page's rows for the region "nodes", and the paging line. With `progress`, the list is not whole yet."""
    rows = list(map(row_of, page.items))
    if progress is not None:
        line = unfinished(PAGING, "node", progress, matches=len(window), reload=view.query())
        return [*(rows or [none_so_far("nodes-none", "nodes")]), line]
    rows = rows or [_no_rows(view)]
    sentence = plural(len(window), "node", "nodes")
    if page.number > 1 or page.has_next:
        sentence = _("{first:,} to {last:,} of {total}", first=page.before + 1, last=page.end, total=sentence)
    previous = view.query(page=page.number - 1) if page.number > 1 else ""
    paging = Paging(sentence, previous, view.query(page=page.number + 1) if page.has_next else "")
    return [*rows, Fragment(PAGING, "shell/fragments/paging.html", paging)]


def node_row(sums: NodeSums, scale_down: ScaleDown, recent: Sequence[UsageSample] = ()) -> NodeRow:
    return NodeRow(
        name=sums.name,
        pool=sums.pool,
        is_platform=sums.is_platform,
        instance_type=sums.instance_type,
        status=sums.status,
        created_at=sums.node.metadata.creation_timestamp,
        pod_count=sums.pod_count,
        shares=shares(sums.requested, sums.allocatable, sums.used, recent),
        has_metrics=sums.used is not None,
        scale_down=scale_down,
    )


def row_fragment(row: NodeRow) -> Fragment:
    return Fragment(element_id("node", row.name), "nodes/fragments/node_row.html", row, region="nodes")


def _no_rows(view: InfrastructureView) -> Fragment:
    if view == InfrastructureView(sort=view.sort, descending=view.descending, page=view.page):
        empty = EmptyState(_("No nodes."), _("The cluster has no nodes, or they have not been read yet."))
    else:
        empty = EmptyState(_("No node matches."), _("Clear the filter to see all nodes."))
    return Fragment("nodes-none", "shell/fragments/empty_row.html", empty, region="nodes")


def fits(sums: NodeSums, view: InfrastructureView, scale_down_of: Callable[[NodeSums], ScaleDown]) -> bool:
    if view.pool and sums.pool != view.pool:
        return False
    if view.text and view.text.lower() not in f"{sums.name} {sums.pool} {sums.instance_type}".lower():
        return False
    if view.state == "ready":
        return sums.status.severity in ("ok", "neutral")
    if view.state == "trouble":
        return sums.status.severity in ("wait", "problem")
    if view.state == "removable":
        return scale_down_of(sums).verdict in ("removing", "marked", "unneeded")
    return True


_SORT_KEYS: dict[str, Callable[[NodeSums], Any]] = {
    "pool": lambda sums: (sums.is_platform, not sums.pool, sums.pool),
    "name": lambda sums: sums.name,
    "type": lambda sums: sums.instance_type,
    "state": lambda sums: (["problem", "wait", "neutral", "ok"].index(sums.status.severity), sums.status.word),
    "created": lambda sums: sums.by_age,
    "pods": lambda sums: sums.pod_count,
    "cpu": lambda sums: sums.requested.cpu / (sums.allocatable.cpu or 1),
    "memory": lambda sums: sums.requested.memory / (sums.allocatable.memory or 1),
}


def _viewed_query(asked: Mapping[str, str]) -> str:
    return InfrastructureView.parse(asked).query(page=1)


VIEWED_TABLES = {"nodes": ViewedTable(_("Nodes"), "infrastructure", _viewed_query, "nodes", is_for_observers=True)}


class ActivityLine(ViewModel, frozen=True, gc=False):
    """One cause. `at` is when it was told last; `objects` are the latest pods or nodes that it was told of, as (kind, namespace, name),
    and `count` says in words how many there are. `reason` and `message` are Kubernetes' own words."""

    at: datetime | None
    is_warning: bool
    headline: str
    reason: str
    message: str
    objects: tuple[tuple[str, str, str], ...]
    count: str


def activity(events: Sequence[Event]) -> list[Fragment]:
    """Return the region "activity", the latest cause first; `events` are the autoscaler's, oldest first."""
    causes: dict[tuple[str, str, str], list[Event]] = {}
    for event in reversed(events[-EVENTS_READ:]):
        causes.setdefault((event.reason, event.message.strip(), event.involved_object.kind), []).append(event)
    if not causes:
        empty = EmptyState(_("Nothing yet."), _("Scale-ups and removals of nodes appear here as they happen."))
        return [Fragment("activity-none", "shell/fragments/empty_item.html", empty, region=REGION)]
    lines = (
        (element_id("cause", reason, f"{crc32(f'{message} {kind}'.encode()):08x}"), _line(events))
        for (reason, message, kind), events in islice(causes.items(), LINES_SHOWN)
    )
    return [Fragment(id, "nodes/fragments/activity_item.html", line, region=REGION) for id, line in lines]


def _line(events: Sequence[Event]) -> ActivityLine:
    latest = events[0]
    involved = (event.involved_object for event in events)
    objects = tuple(dict.fromkeys((about.kind, about.namespace, about.name) for about in involved))
    word = latest.involved_object.kind.lower() or "object"
    return ActivityLine(
        at=latest.last_seen,
        is_warning=latest.type != "Normal",
        headline=headline_of(latest) or latest.reason,
        reason=latest.reason,
        message=latest.message.strip(),
        objects=objects[:NAMED],
        count=plural(len(objects), word, f"{word}s") if len(objects) > 1 else "",
    )
