"""What operators have done to a node, on its page: who cordoned it and why, what is being carried out, and the buttons; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dashboard.nodes.viewmodels.node_drain import Draining
from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.kube.objects import Node
from grid.nodes.draining import Progress
from grid.nodes.nodetasks import Cordon, cordon_of

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


@dataclass(frozen=True, slots=True)
class NodeWork:
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
    """Return what cordoning, or uncordoning, the node means."""
    if is_draining:
        return (
            _("The drain is cancelled, and new pods may be placed on the node again."),
            _("Pods that are ending still end."),
        )
    if cordon is not None:
        return (_("New pods may be placed on the node again."), _("Nothing that runs is affected."))
    stay = _("No pod runs there.")
    if pods:
        stay = ngettext("The pod that runs there keeps running.", "The {count} pods that run there keep running.", pods)
    return (
        _("No new pod is placed on the node until somebody uncordons it.") + f" {stay}",
        _("Executions that wait for a node may wait longer; their pages name the cordoned node."),
    )
