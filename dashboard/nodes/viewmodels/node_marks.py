"""The page on which operators change a node's taints and labels: what it has, and what a change would do; pure."""

from collections.abc import Iterator, Mapping, Sequence

from dashboard.nodes.viewmodels.node import PlannedRow, drain_page
from dashboard.shell.viewmodels.live import ViewModel
from grid.core.labels import PLATFORM_NODE
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed_up_to, plural
from grid.diagnosis.requests import is_own
from grid.kube.objects import Node, Pod
from grid.nodes import nodemarks
from grid.nodes.drain import DisruptionBudget, EvictedData, drain_plan
from grid.runtime.executionrows import ExecutionRow

_NAMED = 5
_VERBS: Mapping[str, str] = {
    nodemarks.TAINT: _("Add taint"),
    nodemarks.UNTAINT: _("Remove taint"),
    nodemarks.LABEL: _("Set label"),
    nodemarks.UNLABEL: _("Remove label"),
}


class MarkLine(ViewModel, frozen=True, gc=False):
    """A taint or label that the node has; `kept_by` says why it cannot be changed here, None when it can."""

    text: str
    remove: nodemarks.Mark
    kept_by: str | None


class MarkPreview(ViewModel, frozen=True, gc=False):
    """What a change would do; `refusal` says why it is refused, None when it is not."""

    mark: nodemarks.Mark
    verb: str
    refusal: str | None = None
    sentences: Sequence[str] = ()
    evicted: Sequence[PlannedRow] = ()


class MarkFacts(ViewModel, frozen=True, gc=False):
    """What a preview is about: the node and its pods, executions by the uid of their pod, and names of tiers that fit no node of their pool
    afterwards (`lost`) or only then (`gained`). `unread` says why volumes and budgets are not known."""

    node: Node
    pods: Sequence[Pod]
    rows: Mapping[str, ExecutionRow]
    volumes: Sequence[EvictedData] = ()
    budgets: Sequence[DisruptionBudget] = ()
    unread: str = ""
    lost: Sequence[str] = ()
    gained: Sequence[str] = ()


def mark_lines(node: Node) -> tuple[list[MarkLine], list[MarkLine]]:
    taints = [nodemarks.Mark(nodemarks.UNTAINT, taint.key, taint.value, taint.effect) for taint in node.spec.taints]
    labels = [
        (f"{key}={value}", nodemarks.Mark(nodemarks.UNLABEL, key))
        for key, value in sorted(node.metadata.labels.items())
    ]
    return (
        [MarkLine(str(taint), taint, nodemarks.whose_mark(taint.key)) for taint in taints],
        [MarkLine(text, mark, nodemarks.whose_mark(mark.key)) for text, mark in labels],
    )


def mark_preview(mark: nodemarks.Mark, facts: MarkFacts, *, pool_label: str) -> MarkPreview:
    verb = _VERBS.get(mark.action, "")
    if problem := nodemarks.refusal(mark, facts.node):
        return MarkPreview(mark, verb, problem)
    evicted = nodemarks.evictions(facts.pods, mark.taint) if mark.action == nodemarks.TAINT else []
    if problem := _around_budgets(evicted, facts):
        return MarkPreview(mark, verb, problem)
    others = [eviction for eviction in evicted if not is_own(eviction.pod)]
    page = drain_page(drain_plan([eviction.pod for eviction in others], facts.volumes, ()), facts.rows)
    sentences = (
        *_taint_sentences(mark, facts, evicted, page.summary if others else ""),
        *_label_sentences(mark, facts, pool_label),
        *_tier_sentences(facts),
    )
    return MarkPreview(mark, verb, None, sentences, page.evicted)


def _around_budgets(evicted: Sequence[nodemarks.Eviction], facts: MarkFacts) -> str | None:
    """Return why the pods must not be evicted by a taint: Kubernetes asks no disruption budget then."""
    if evicted and facts.unread:
        unknown = _("It would evict pods, and whether disruption budgets protect them could not be read. {unread}")
        return unknown.format(unread=facts.unread)
    if names := nodemarks.budgets_of((eviction.pod for eviction in evicted), facts.budgets):
        return _(
            "A NoExecute taint evicts pods without asking their disruption budgets ({named}). "
            "Drain the node first, which respects them, and then add the taint.",
            named=listed_up_to(_NAMED, names),
        )
    return None


def _taint_sentences(
    mark: nodemarks.Mark, facts: MarkFacts, evicted: Sequence[nodemarks.Eviction], summary: str
) -> Iterator[str]:
    if mark.action == nodemarks.UNTAINT:
        yield _("Pods that do not tolerate the taint may be placed on the node again.")
        yield _("Nothing that runs is affected.")
    if mark.action != nodemarks.TAINT:
        return
    if any((taint.key, taint.effect) == (mark.key, mark.effect) for taint in facts.node.spec.taints):
        yield _("It replaces the taint of this key and effect that the node has now.")
    if mark.effect == "PreferNoSchedule":
        yield _("New pods that do not tolerate it are placed here only when no other node takes them.")
        return
    yield _("No new pod that does not tolerate it is placed on the node. Later nodes of the pool do not get the taint.")
    if mark.effect == "NoSchedule":
        yield _("Running executions keep running.")
        return
    yield summary or _("No pod of an execution or another program is evicted.")
    if own := [eviction.pod.metadata.name for eviction in evicted if is_own(eviction.pod)]:
        yield ngettext(
            "{count:,} pod of DaemonSets must go too, and none comes while the taint is there: {names}.",
            "{count:,} pods of DaemonSets must go too, and none comes while the taint is there: {names}.",
            len(own),
            names=listed_up_to(_NAMED, own),
        )
    if later := max((eviction.after for eviction in evicted), default=0):
        seconds = plural(later, "second", "seconds")
        yield _("Pods that tolerate it for a time are evicted after that, the last after {seconds}.", seconds=seconds)


def _label_sentences(mark: nodemarks.Mark, facts: MarkFacts, pool_label: str) -> Iterator[str]:
    if mark.is_taint:
        return
    now = facts.node.metadata.labels
    if mark.action == nodemarks.LABEL and mark.key in now:
        yield _("It replaces the value {value}.", value=now[mark.key] or _("(empty)"))
    if mark.key in (pool_label, PLATFORM_NODE):
        yield from _pool_sentences(facts.node, nodemarks.with_mark(facts.node, mark), pool_label)
    selecting = nodemarks.selected_by_label(facts.pods, mark)
    if own := [pod.metadata.name for pod in selecting if is_own(pod)]:
        named = listed_up_to(_NAMED, own)
        yield _("DaemonSets that ask for the label as it is now remove their pods: {named}.", named=named)
    if stay := len(selecting) - len(own):
        yield ngettext(
            "{count:,} pod asks for the label as it is now. They keep running, and would not be placed here again.",
            "{count:,} pods ask for the label as it is now. They keep running, and would not be placed here again.",
            stay,
        )
    if not selecting:
        yield _("No pod on the node asks for this label, so nothing that runs is affected.")


def _pool_sentences(before: Node, after: Node, pool_label: str) -> Iterator[str]:
    left, joined = (node.metadata.labels.get(pool_label, "") for node in (before, after))
    if left != joined:
        if left and joined:
            yield _("The node leaves the pool {left} and joins the pool {joined}.", left=left, joined=joined)
        elif left:
            yield _("The node leaves the pool {left} and is in no pool then.", left=left)
        else:
            yield _("The node was in no pool and joins the pool {joined}.", joined=joined)
        yield _(
            "The autoscaler goes by the cloud's group of machines, which does not change: its limits still count the node there."
        )
    if nodemarks.is_platform(before, pool_label) != nodemarks.is_platform(after, pool_label):
        if nodemarks.is_platform(after, pool_label):
            yield _("The node becomes a platform node, which does not count as one for executions.")
        else:
            yield _("The node is no longer a platform node, and counts as one for executions.")


def _tier_sentences(facts: MarkFacts) -> Iterator[str]:
    if facts.lost:
        yield _(
            "No node of their pool fits these tiers afterwards: {named}. "
            "Their executions wait for a new node, if the autoscaler may start one.",
            named=listed_up_to(_NAMED, facts.lost),
        )
    if facts.gained:
        names = listed_up_to(_NAMED, facts.gained)
        yield _("The node is then the only one of its pool that fits these tiers: {names}.", names=names)
    if not facts.lost and not facts.gained:
        yield _("Each tier that fits a node of the pool now still does.")
