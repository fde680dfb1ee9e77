"""One node's page: its facts, what operators have done to it, and a drain before it begins and while it goes on; pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dashboard.nodes.viewmodels.infrastructure import NodeRow
from dashboard.shell.viewmodels.live import Fragment, ViewModel
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.diagnosis.places import taint_text
from grid.kube.objects import Node
from grid.nodes.drain import DrainedPod
from grid.nodes.draining import Progress
from grid.nodes.nodetasks import Cordon, cordon_of
from grid.runtime.executionrows import ExecutionRow

_KINDS: Mapping[str, str] = {
    "workspace": _(
        "The workspace ends with an error. Its owner can resume it on another node; what is only in memory is lost."
    ),
    "app": _("The app ends with an error, and its owner has to launch it again."),
    "job": _("The run ends with an error, and is tried again if it has retries left."),
}


class Whose(ViewModel, frozen=True, gc=False):
    """The execution of a pod; all empty for a pod that belongs to none."""

    execution: str = ""
    title: str = ""
    owner: str = ""
    project: str = ""


class PlannedRow(ViewModel, frozen=True, gc=False):
    """One pod of the plan. `lost` names the volumes whose data goes with it; `forbids` the budget that keeps it."""

    namespace: str
    name: str
    whose: Whose
    follows: str
    lost: str = ""
    forbids: str | None = None


class DrainPlan(ViewModel, frozen=True, gc=False):
    evicted: Sequence[PlannedRow]
    stay: Sequence[PlannedRow]
    summary: str


class DrainingPod(ViewModel, frozen=True, gc=False):
    namespace: str
    name: str
    whose: Whose
    word: str
    since: datetime
    why: str


class Draining(ViewModel, frozen=True, gc=False):
    """How far a drain is; the pods that are longest in their state come first."""

    gone: int
    pods: int
    left: tuple[DrainingPod, ...]


def whose_of(row: ExecutionRow | None) -> Whose:
    if row is None:
        return Whose()
    return Whose(row.id, row.title or row.object_name, row.owner_username, row.project_name)


def drain_page(plan: Sequence[DrainedPod], rows: Mapping[str, ExecutionRow]) -> DrainPlan:
    """Return the plan as the page shows it; `rows` are the pods' executions by the pod's uid."""
    evicted, stay = (
        [_planned(drained, rows.get(drained.pod.metadata.uid)) for drained in plan if drained.fate == fate]
        for fate in ("evicted", "stays")
    )
    return DrainPlan(evicted, stay, " ".join(_summary(evicted, len(stay))))


def _summary(evicted: Sequence[PlannedRow], stay: int) -> Iterator[str]:
    people = len({row.whose.owner for row in evicted if row.whose.owner})
    pods = plural(len(evicted), "pod", "pods")
    if people:
        yield _("It evicts {pods} of {people}.", pods=pods, people=plural(people, "person", "people"))
    else:
        yield _("It evicts {pods}.", pods=pods) if evicted else _("Nothing runs there that would have to be evicted.")
    if stay:
        yield ngettext("{count:,} pod of the node's own stays.", "{count:,} pods of the node's own stay.", stay)
    if kept := sum(bool(row.forbids) for row in evicted):
        yield ngettext(
            "{count:,} eviction must wait for a disruption budget.",
            "{count:,} evictions must wait for a disruption budget.",
            kept,
        )


def _planned(drained: DrainedPod, row: ExecutionRow | None) -> PlannedRow:
    follows = drained.why
    if not drained.comes_back:
        follows = f"{drained.why} {_('It does not come back.')}" if row is None else _KINDS.get(row.kind, drained.why)
    meta = drained.pod.metadata
    return PlannedRow(meta.namespace, meta.name, whose_of(row), follows, ", ".join(drained.lost), drained.forbids)


def draining(progress: Progress, row_of: Callable[[str], ExecutionRow | None], namespace: str) -> Draining:
    """Return how far the drain is; labels of executions are trusted in `namespace` alone."""
    left = []
    for pod in sorted(progress.values(), key=lambda pod: (pod.since, pod.namespace, pod.name)):
        if pod.state != "gone":
            row = row_of(pod.execution) if pod.execution and pod.namespace == namespace else None
            word = _("Ending") if pod.state == "ending" else _("Waits")
            left.append(DrainingPod(pod.namespace, pod.name, whose_of(row), word, pod.since, pod.why))
    return Draining(len(progress) - len(left), len(progress), tuple(left))


_DOING = {
    "cordon": _("Cordon requested"),
    "uncordon": _("Uncordon requested"),
    "drain": _("Draining"),
    "taint": _("New taint requested"),
    "untaint": _("Removal of a taint requested"),
    "label": _("Label requested"),
    "unlabel": _("Removal of a label requested"),
}


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A node's task as a plain value; `trouble` says why it does not go on, or why it was refused. `mark` is the taint or label."""

    action: str
    by: str
    asked_at: datetime
    reason: str = ""
    mark: str = ""
    trouble: str = ""
    ended_at: datetime | None = None
    outcome: str = ""
    progress: Progress = field(default_factory=dict, hash=False)


class NodeWork(ViewModel, frozen=True, gc=False):
    """The part of a node's page; `doing` is "" when nothing is being carried out."""

    name: str
    cordon: Cordon | None
    cordoned_at: datetime | None
    task: TaskLine | None
    doing: str
    drain: Draining | None
    is_draining: bool
    may_act: bool


def node_work(
    name: str, node: Node | None, task: TaskLine | None, drain: Draining | None = None, *, may_act: bool
) -> Fragment:
    """Return the fragment; `drain` is how far the task is when it is a drain."""
    cordon = None if node is None else cordon_of(node)
    is_open = task is not None and task.ended_at is None
    work = NodeWork(
        name=name,
        cordon=cordon,
        cordoned_at=moment(cordon.at) if cordon else None,
        task=task,
        doing=_DOING.get(task.action, "") if task is not None and is_open else "",
        drain=drain,
        is_draining=task is not None and is_open and task.action == "drain",
        may_act=may_act and node is not None,
    )
    return Fragment("node-work", "nodes/fragments/node_work.html", work)


def moment(text: str) -> datetime | None:
    """Return the time that an annotation holds; None when anybody has written something else there."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def cordon_sentences(cordon: Cordon | None, pods: int, *, is_draining: bool = False) -> Sequence[str]:
    if is_draining:
        sentence = _("The drain is cancelled, and new pods may be placed on the node again.")
        return (sentence, _("Pods that are ending still end."))
    if cordon is not None:
        return (_("New pods may be placed on the node again."), _("Nothing that runs is affected."))
    stay = _("No pod runs there.")
    if pods:
        stay = ngettext("The pod that runs there keeps running.", "The {count} pods that run there keep running.", pods)
    return (
        _("No new pod is placed on the node until somebody uncordons it.") + f" {stay}",
        _("Executions that wait for a node may wait longer; their pages name the cordoned node."),
    )


class NodeFacts(ViewModel, frozen=True, gc=False):
    """A node's facts; `row` is None when the node is gone."""

    name: str
    row: NodeRow | None
    address: str = ""
    version: str = ""
    system: str = ""
    runtime: str = ""
    taints: tuple[str, ...] = ()


def node_facts(name: str, node: Node | None, row: NodeRow | None) -> Fragment:
    facts = NodeFacts(name, row)
    if node is not None:
        info, addresses = node.status.node_info, node.status.addresses
        address = next((address.address for address in addresses if address.type == "InternalIP"), "")
        versions, taints = (info.kubelet_version, info.os_image, info.container_runtime_version), node.spec.taints
        facts = NodeFacts(name, row, address, *versions, tuple(map(taint_text, taints)))
    return Fragment("facts", "nodes/fragments/node_facts.html", facts)
