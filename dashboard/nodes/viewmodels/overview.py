"""The overview: waiting and failing work, and pools with the autoscaler's part; pure. Cells of nodes are in `node_cells`."""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Literal

from dashboard.executions.viewmodels.execution_groups import Group
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.nodes.viewmodels.node_cells import REGION, CellMap, density, states_words
from dashboard.nodes.viewmodels.pools import PoolSums
from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from dashboard.shell.viewmodels.states import STATES, StatusLine, kind_name, state_status
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import listed, plural
from grid.kube.pools import NodeGroup
from grid.runtime.executionrows import ExecutionRow

WORST_SHOWN = 5
FAILED_SHOWN = 3
REASONS_SHOWN = 3

_QUEUE_REASONS = {
    "over_user_slots": _("All slots of the owner are in use."),
    "over_tier_maximum": _("The tier is at its limit of executions."),
    "maintenance": _("Maintenance: nothing is launched."),
    "taken_over": _("An operator decides by hand what starts."),
    "over_budget": _("The budget of its project is used up."),
    "larger_than_limit": _("It needs more slots than one user may hold."),
}

TROUBLE = ExecutionsView(status="trouble", descending=True)  # oldest first, as the others
QUEUED = ExecutionsView(status="queued", descending=True)
DEPLOYING = ExecutionsView(status="deploying", descending=True)
PREPARING = ExecutionsView(status="preparing", descending=True)


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
    note = _("Nothing is waiting or failing.") if not any((trouble, failed, queued, deploying, preparing)) else ""
    if not is_whole:
        note = _("The executions are still being counted.")
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
    return WorkLine(
        execution_id=row.id,
        name=row.title or row.object_name,
        about=", ".join((kind_name(row.kind), row.owner_username, row.project_name)),
        status=status,
        since=row.ended_at,
        has_ended=True,
    )


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
    nodes = ", ".join([plural(len(pool), "node", "nodes"), *states_words(cells.states)])
    return _("{nodes}. {shares} requested.", nodes=nodes, shares=listed(shares))


def _autoscaler_sentence(group: NodeGroup | None, coming: int) -> str:
    if group is None:
        return _("Fixed size")
    words = _("Autoscaler: {minimum:,} to {maximum:,} nodes", minimum=group.minimum, maximum=group.maximum)
    if coming:
        return _("{limits}, {coming:,} on the way", limits=words, coming=coming)
    return _("{limits}, at its maximum", limits=words) if group.target >= group.maximum else words
