"""CPU contention in words and as a chart: for operators the nodes with their pods, for the owner of a victim a notice; pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from dashboard.shell.viewmodels.format import cores_words, percent
from dashboard.shell.viewmodels.live import Fragment, ViewModel
from dashboard.shell.viewmodels.states import Severity
from grid.core.translation import gettext as _
from grid.nodes.contention import Contention, PodCpu, for_operators, for_owner
from grid.runtime.executionrows import ExecutionRow

PODS_SHOWN = 8
NODES_SHOWN = 3
_ROLES: Mapping[str, tuple[str, Severity]] = {
    "offender": (_("far above its request"), "wait"),
    "victim": (_("may be short of CPU"), "wait"),
    "": ("", "neutral"),
}
RowOf = Callable[[str], ExecutionRow | None]


class PodBar(ViewModel, frozen=True, gc=False):
    """A pod of the chart: what it requested and uses, and as shares of the CPU that pods can use; `execution_id` is "" for a pod of
    no execution known here."""

    name: str
    execution_id: str
    namespace: str
    pod_name: str
    owner: str
    role: str
    severity: Severity
    requested: str
    used: str
    requested_percent: int
    used_percent: int


class ContendedNode(ViewModel, frozen=True, gc=False):
    node: str
    sentence: str
    since: datetime
    bars: tuple[PodBar, ...]
    more: int  # pods that are not shown


class ContendedNodes(ViewModel, frozen=True, gc=False):
    """The nodes of a page, the worst first; `more` is how many others there are, `names_nodes` whether the page is of one node."""

    nodes: tuple[ContendedNode, ...] = ()
    more: int = 0
    names_nodes: bool = True


class ShortOfCpu(ViewModel, frozen=True, gc=False):
    """The notice on an execution's page; `sentence` is "" when there is nothing to say. `node` is for those who see nodes."""

    sentence: str = ""
    node: str = ""


def contended_nodes(contentions: Sequence[Contention], row_of: RowOf, *, names_nodes: bool = True) -> Fragment:
    """Return the nodes as an element that is always there, for those who see all nodes and executions."""
    nodes = tuple(_node(contention, row_of) for contention in contentions[:NODES_SHOWN])
    context = ContendedNodes(nodes, max(0, len(contentions) - NODES_SHOWN), names_nodes)
    return Fragment("contention", "usage/fragments/contention.html", context)


def short_of_cpu(victim: tuple[Contention, PodCpu] | None, kind: str, *, is_owner: bool, sees_all: bool) -> Fragment:
    """Return the notice for an execution's owner, who learns nothing of others on the node, and for those who may see the node."""
    notice = ShortOfCpu()
    if victim is not None and (is_owner or sees_all):
        where, pod = victim
        notice = ShortOfCpu(for_owner(pod, kind), where.node if sees_all else "")
    return Fragment("contention", "usage/fragments/short_of_cpu.html", notice)


def _node(contention: Contention, row_of: RowOf) -> ContendedNode:
    return ContendedNode(
        node=contention.node,
        sentence=for_operators(contention, lambda pod: _called(pod, row_of)),
        since=datetime.fromtimestamp(contention.since, UTC),
        bars=tuple(_bar(pod, contention.cores, row_of) for pod in contention.pods[:PODS_SHOWN]),
        more=max(0, len(contention.pods) - PODS_SHOWN),
    )


def _bar(pod: PodCpu, cores: int, row_of: RowOf) -> PodBar:
    row = row_of(pod.group)
    namespace, _, name = pod.key.rpartition("/")
    role, severity = _ROLES[pod.role]
    return PodBar(
        name=name if row is None else row.title or row.object_name,
        execution_id="" if row is None else row.id,
        namespace=namespace,
        pod_name=name,
        owner="" if row is None else row.owner_username,
        role=role,
        severity=severity,
        requested=cores_words(f"{pod.requested}m"),
        used=cores_words(f"{pod.used}m"),
        requested_percent=percent(pod.requested, cores),
        used_percent=percent(pod.used, cores),
    )


def _called(pod: PodCpu, row_of: RowOf) -> str:
    row = row_of(pod.group)
    if row is None:
        return pod.key.rpartition("/")[2]
    return _("“{title}” of {owner_username}", title=row.title or row.object_name, owner_username=row.owner_username)
