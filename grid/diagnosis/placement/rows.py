"""Puts the nodes of a pod's placement into a few rows: how many, some names, what keeps it off, and for how long."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from heapq import nsmallest

from grid.core.translation import gettext as _
from grid.core.wording import listed_up_to
from grid.diagnosis.diagnosis import EvidenceRow, Lasting
from grid.diagnosis.placement.obstacles import FOREIGN, NodeSituation, Obstacle, Placement
from grid.diagnosis.placement.spread import HOSTNAME, area
from grid.diagnosis.requests import holds_a_node
from grid.diagnosis.resources import PODS, amount_words, compared, requested_amounts, resource_amounts
from grid.kube.objects import Node, Pod

_NAMED = 3
_ROWS = 8
_HOLDERS = 2


def count(group: Iterable[NodeSituation]) -> int:
    return sum(len(situation.nodes) for situation in group)


def names(group: Iterable[NodeSituation], most: int = _NAMED) -> tuple[str, ...]:
    """Return the names of the first nodes."""
    return tuple(nsmallest(most, [node.metadata.name for situation in group for node in situation.nodes]))


def table(
    placement: Placement, situations: Iterable[NodeSituation], *, is_doubted: bool = False
) -> tuple[EvidenceRow, ...]:
    """Return the rows: the pod's own nodes first, the largest first, nodes that it cannot use at all last. `is_doubted` says that the
    scheduler complains of what is not computed here."""
    groups: dict[tuple[tuple[str, str], ...], list[NodeSituation]] = {}
    for situation in situations:
        groups.setdefault(_alike(situation), []).append(situation)
    ordered = sorted(groups.values(), key=lambda group: (_is_foreign(group[0]), -count(group)))
    rows = [_row(placement, group, is_doubted=is_doubted) for group in ordered[:_ROWS]]
    rest = [situation for group in ordered[_ROWS:] for situation in group]
    if rest:
        rows.append(EvidenceRow(count(rest), names(rest), _("other reasons like these"), _lasting(rest[0].obstacles)))
    return tuple(rows)


def _alike(situation: NodeSituation) -> tuple[tuple[str, str], ...]:
    """Nodes of several other pools are one row."""
    if _is_foreign(situation):
        return next(((each.kind, each.subject),) for each in situation.obstacles if each.kind in FOREIGN)
    working = {each: f" {each.free}/{each.size}" if each.kind == "broken" else "" for each in situation.obstacles}
    return tuple([(each.kind, each.subject + working[each]) for each in situation.obstacles])


def _is_foreign(situation: NodeSituation) -> bool:
    return not FOREIGN.isdisjoint(situation.kinds)


def _row(placement: Placement, group: Sequence[NodeSituation], *, is_doubted: bool) -> EvidenceRow:
    first, nodes, named = group[0], count(group), names(group)
    if not first.obstacles:
        what = _("has the CPU and memory for this, but the scheduler says no") if is_doubted else _("has room for this")
        return EvidenceRow(nodes, named, what, "for_now")
    if _is_foreign(first):
        foreign = [_foreign_words(obstacle) for obstacle in first.obstacles if obstacle.kind in FOREIGN]
        return EvidenceRow(nodes, named, "; ".join(dict.fromkeys(foreign)), "decision")
    states = [each for each in first.obstacles if each.kind in ("cordon", "leaving", "not_ready", "taint")]
    of_state = [_("taint {taint}", taint=each.subject) if each.kind == "taint" else each.subject for each in states]
    parts = [*of_state, *_size_words(placement, group), *_between_words(first)]
    lasting, until = _lasting(first.obstacles), None
    if first.kinds <= {"full"}:
        holding = [pod for name in named for pod in placement.scheduling.pods_on(name)]
        parts[-1] += _holders(placement, _("; taken by {holders}"), holding)
        rooms = (_room_on(placement, node) for each in group for node in each.nodes if node.metadata.name in named)
        until = min((end for end in rooms if end is not None), default=None)  # one of them has room by then
    elif first.kinds == {"port"}:
        users = [placement.port_users(name) for name in named]
        parts[-1] += _holders(placement, _("; used by {holders}"), (pod for each in users for pod in each))
        until = min((end for end in map(_latest_end, users) if end is not None), default=None)
    return EvidenceRow(nodes, named, "; ".join(parts), lasting, until)


def _lasting(obstacles: Sequence[Obstacle]) -> Lasting:
    """Return the longest: what is for ever, then what somebody decided."""
    lasting = {obstacle.lasting for obstacle in obstacles}
    return "always" if "always" in lasting else "decision" if "decision" in lasting else "for_now"


def _foreign_words(obstacle: Obstacle) -> str:
    words = {
        "pool": _("not of the pool {pool}"),
        "label": _("no label {label}"),
        "control_plane": _("of the control plane"),
    }.get(obstacle.kind, _("does not match {labels}"))
    return words.format(pool=obstacle.subject, label=obstacle.subject, labels=obstacle.subject)


def _size_words(placement: Placement, group: Sequence[NodeSituation]) -> list[str]:
    """Compare with the most that a node of the row has, or has free."""
    parts = []
    small, free = most(group, "too_small"), most(group, "full")
    beside_own = any(obstacle.beside_own for situation in group for obstacle in situation.obstacles)
    is_varied = any(situation.obstacles != group[0].obstacles for situation in group)
    if small:
        has, needs = compared(small, placement.needs)
        left = _(" beside the node's own pods") if beside_own else ""
        has = _("at most {amount}", amount=has) if is_varied else has
        parts.append(_("too small: has {has}{left}, but {needs} needed", has=has, left=left, needs=needs))
    broken = _("devices that do not work: {working} of {all} offered, but {needs} needed")
    for obstacle in group[0].obstacles:
        if obstacle.kind == "broken" and not obstacle.size:
            parts.append(_("offers no GPU yet, though its labels tell of some"))
        elif obstacle.kind == "broken":
            every, needs = amount_words(obstacle.subject, obstacle.size), f"{placement.needs[obstacle.subject]:,}"
            parts.append(broken.format(working=f"{obstacle.free:,}", all=every, needs=needs))
    if PODS in free:
        parts.append(_("full: runs as many pods as it may"))
        free = {name: amount for name, amount in free.items() if name != PODS}
    if free:
        has, needs = compared(free, placement.needs)
        has = _("at most {amount}", amount=has) if is_varied and any(free.values()) else has
        parts.append(_("full: {has} free, but {needs} needed", has=has, needs=needs))
    return parts


def most(group: Iterable[NodeSituation], kind: str) -> dict[str, int]:
    """Return the most of each resource that a node has and that is not enough: of the empty node, or of what is free now."""
    amounts: dict[str, int] = {}
    for situation in group:
        for obstacle in situation.obstacles:
            if obstacle.kind == kind:
                amount = obstacle.size if kind == "too_small" else obstacle.free
                amounts[obstacle.subject] = max(amounts.get(obstacle.subject, 0), amount)
    return amounts


def _between_words(situation: NodeSituation) -> list[str]:
    here = {
        "port": _("port {subject} is taken"),
        "apart": _("runs {subject}"),
        "beside": _("runs nothing with {subject}, which this must be beside"),
        "spread": _("has its share already of an even spread ({subject})"),
        "volume": _("cannot reach {subject}"),
    }
    near = {
        "apart": _("in a {area} that runs {subject}"),
        "beside": _("in a {area} that runs nothing with {subject}, which this must be beside"),
    }
    words = []
    for obstacle in situation.obstacles:
        text = here.get(obstacle.kind, "")
        if obstacle.key not in ("", HOSTNAME):
            text = near.get(obstacle.kind, text)
        words += [text.format(subject=obstacle.subject, area=area(obstacle.key))] if text else []
    return words


def _holders(placement: Placement, clause: str, pods: Iterable[Pod]) -> str:
    """Return who has what this waits for: of all that runs on the nodes that the row names, or of those that have its port."""
    holding = filter(holds_a_node, pods)
    known = list(dict.fromkeys(words for words in map(placement.scheduling.holder, holding) if words))
    return clause.format(holders=listed_up_to(_HOLDERS, known)) if known else ""


def _room_on(placement: Placement, node: Node) -> datetime | None:
    """Return when the node has room at the latest; None when what runs there may go on for ever."""
    scheduling = placement.scheduling
    taken, size = scheduling.room.requested(node.metadata.name), resource_amounts(node.status.allocatable)
    missing = {name: amount + taken.get(name, 0) - size.get(name, 0) for name, amount in placement.needs.items()}
    holding = filter(holds_a_node, scheduling.pods_on(node.metadata.name))
    ending = [(end, pod) for pod in holding if (end := _end_of(pod)) is not None]
    for end, pod in sorted(ending, key=lambda pair: pair[0]):
        missing = {name: amount - requested_amounts(pod).get(name, 0) for name, amount in missing.items()}
        if all(amount <= 0 for amount in missing.values()):
            return end
    return None


def _latest_end(pods: Sequence[Pod]) -> datetime | None:
    """Return when all of them have ended at the latest; None when one may go on for ever."""
    ends = list(map(_end_of, pods))
    known = [end for end in ends if end is not None]
    return max(known, default=None) if len(known) == len(ends) else None


def _end_of(pod: Pod) -> datetime | None:
    """Return when the pod ends at the latest: it is being deleted, or Kubernetes ends it at its active deadline. None when it has no end.
    https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/: the deadline counts from the moment at which the kubelet took the
    pod, and the time of a deletion includes the grace period."""
    deadline, started = pod.spec.active_deadline_seconds, pod.status.start_time
    over = started + timedelta(seconds=deadline) if started is not None and deadline is not None else None
    return min((end for end in (pod.metadata.deletion_timestamp, over) if end is not None), default=None)
