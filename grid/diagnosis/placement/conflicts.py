"""What stands between a pod and the nodes that are large enough for it, counted: who runs what already, and how many are full; pure.

"Each", "both" and "none" are said only of what holds for all of the nodes; else each part has its number.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grid.core.translation import gettext as _, ngettext
from grid.diagnosis.placement.obstacles import CLOSED, FOREIGN, NodeSituation, Placement
from grid.diagnosis.placement.rows import count
from grid.diagnosis.placement.spread import HOSTNAME, Spread, area, where_it_lacks

STEPS: Mapping[str, str] = {
    "port": _("Wait until what uses the port ends."),
    "apart": _("Wait until what it must be apart from ends, or ask an operator about its anti-affinity."),
    "beside": _("Start what this must be beside, or ask an operator about its affinity."),
    "spread": _("Ask an operator about the topology spread constraint."),
}
# What a node's state is called where its domain should take the next pod; what lasts longest comes first.
_STATES: Mapping[str, str] = {
    **dict.fromkeys(FOREIGN, _("not for this")),
    "cordon": _("cordoned, but counted"), "leaving": _("being removed, but counted"), "not_ready": _("not ready, but counted"),
    "taint": _("closed by a taint, but counted"), "too_small": _("too small"), "broken": _("without working devices"),
    "volume": _("out of reach of its volume"), "full": _("full"), "port": _("without the port that this needs"),
    "apart": _("taken by what this must be apart from"), "beside": _("without what this must be beside"),
    "spread": _("closed by another rule on spread"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of the nodes, and what keeps the pod off them: a rule between pods of one kind and label, or that they are full."""

    kind: str
    key: str
    subjects: tuple[str, ...]
    nodes: Sequence[NodeSituation]


def conflicts(placement: Placement, waiting: Sequence[NodeSituation], every: Sequence[NodeSituation]) -> str:
    """Return what keeps the pod off these nodes, each of which it could use; `every` are all nodes."""
    parts, total = _parts(waiting), count(waiting)
    is_partition = sum(count(part.nodes) for part in parts) == total
    words = []
    for part in parts:
        number = count(part.nodes)
        is_rest = is_partition and part is parts[-1] and number < total
        words.append(_words(part, number, total, _who(number, total, is_rest=is_rest)))
    spreads = [*dict.fromkeys(part.key for part in parts if part.kind == "spread")]
    numbers = [_spread_words(spread, waiting, every) for spread in placement.spreads if spread.key in spreads]
    return "; ".join([*words, *filter(None, numbers)])


def step_for(kind: str, placement: Placement, every: Sequence[NodeSituation]) -> str:
    """Return what to do about a conflict of this kind that all nodes have."""
    if kind == "spread":
        closed = [
            node.metadata.name
            for spread in placement.spreads
            for value in spread.emptiest
            for situation in every
            if not CLOSED.isdisjoint(situation.kinds) and FOREIGN.isdisjoint(situation.kinds)
            for node in situation.nodes
            if node.metadata.labels.get(spread.key) == value
        ]
        if len(set(closed)) == 1:
            step = _("Ask an operator when node {node} takes work again, or about the topology spread constraint.")
            return step.format(node=closed[0])
    return STEPS[kind]


def _parts(waiting: Sequence[NodeSituation]) -> list[_Part]:
    subjects: dict[tuple[str, str], dict[str, None]] = {}
    nodes: dict[tuple[str, str], dict[int, NodeSituation]] = {}
    for situation in waiting:
        for obstacle in situation.obstacles:
            group = obstacle.kind, obstacle.key
            subjects.setdefault(group, {})[obstacle.subject] = None
            nodes.setdefault(group, {})[id(situation)] = situation
    order = [*STEPS, "full"]
    known = sorted((group for group in nodes if group[0] in order), key=lambda group: order.index(group[0]))
    return [_Part(*group, tuple(subjects[group]), [*nodes[group].values()]) for group in known]


def _who(number: int, total: int, *, is_rest: bool) -> str:
    if total == 1:
        return _("it")
    if number == total:
        return _("both") if total == 2 else _("each")
    if is_rest and number == 1:
        return {2: _("the other"), 3: _("the third")}.get(total, _("the last"))
    return _("the other {number:,}", number=number) if is_rest else f"{number:,}"


def _words(part: _Part, number: int, total: int, who: str) -> str:
    is_all = number == total
    verbs = 1 if is_all and total != 2 else number  # "each runs", "both run", "3 run"
    if part.kind == "full":
        return ngettext("{who} is full", "{who} are full", verbs, who=who)
    if part.kind == "port":
        words = _("port {ports} is taken there") if is_all else _("port {ports} is taken on {who}")
        return words.format(ports=_(" or ").join(part.subjects), who=who)
    if part.kind == "spread":
        if is_all:
            return _("it must be spread evenly")
        return ngettext(
            "{who} has its share of an even spread", "{who} have their share of an even spread", verbs, who=who
        )
    if part.kind == "beside":
        return _lonely_words(part, number, total, who)
    subject = part.subjects[0] if len(part.subjects) == 1 else _("a pod that must be apart from this")
    singular, several = _("{who} already runs {subject}"), _("{who} already run {subject}")
    if part.key != HOSTNAME:
        singular = _("{who} is in a {area} that already runs {subject}")
        several = _("{who} are in a {area} that already runs {subject}")
    return ngettext(singular, several, verbs, who=who, area=area(part.key), subject=subject)


def _lonely_words(part: _Part, number: int, total: int, who: str) -> str:
    subject = part.subjects[0]  # all terms of the pod in words, the same for each node
    if number == total > 1:
        nobody = _("neither") if total == 2 else _("none")
        clause = _("{nobody} runs {subject}, which it must be beside")
        if part.key != HOSTNAME:
            clause = _("{nobody} is in a {area} that runs {subject}, which it must be beside")
        return clause.format(nobody=nobody, area=area(part.key), subject=subject)
    singular = _("{who} runs nothing with {subject}, which this must be beside")
    several = _("{who} run nothing with {subject}, which this must be beside")
    if part.key != HOSTNAME:
        singular = _("{who} is in a {area} that runs nothing with {subject}, which this must be beside")
        several = _("{who} are in a {area} that runs nothing with {subject}, which this must be beside")
    return ngettext(singular, several, number, who=who, area=area(part.key), subject=subject)


def _spread_words(spread: Spread, waiting: Sequence[NodeSituation], every: Sequence[NodeSituation]) -> str:
    """Return the numbers of a constraint that closes some of these nodes, and why the emptiest domain takes nothing; else ""."""
    closed = {value for value in _values(waiting, spread.key) if spread.is_broken_in(value)}
    if not closed:
        return ""
    lacking = []
    if len(spread.emptiest) <= 2:  # of more, the numbers say enough
        lacking = [where_it_lacks(spread.key, value, _states(spread, value, every)) for value in spread.emptiest]
    return "; ".join([spread.words(closed), *lacking])


def _values(situations: Iterable[NodeSituation], key: str) -> list[str]:
    return [node.metadata.labels.get(key, "") for situation in situations for node in situation.nodes]


def _states(spread: Spread, value: str, every: Sequence[NodeSituation]) -> dict[str, int]:
    states: dict[str, int] = {}
    for situation in every:
        number = _values([situation], spread.key).count(value)
        if number:
            state = next((_STATES[kind] for kind in _STATES if kind in situation.kinds), _("free"))
            states[state] = states.get(state, 0) + number
    return states
