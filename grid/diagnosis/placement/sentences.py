"""The sentence for each reason why a pod has no node: what is so, whether that is normal, who can act, and what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass

from grid.diagnosis.diagnosis import Diagnosis, Who
from grid.diagnosis.placement.growth import Growth
from grid.diagnosis.placement.obstacles import CLOSED, NodeSituation, Obstacle, Placement
from grid.diagnosis.placement.rows import count, most, names
from grid.diagnosis.resources import PODS, compared
from grid.diagnosis.selectors import in_words
from grid.wording import listed, plural

_ZONE = "topology.kubernetes.io/zone"
_BY_ITSELF = "Nothing to do: it starts by itself."
# What stands between pods: in words, and what to do.
_CONFLICTS = {
    "port": ("port {} is taken there", "Wait until what uses the port ends."),
    "apart": ("each already runs {}", "Wait until what it must be apart from ends."),
    "beside": (
        "none runs {}, which it must be beside",
        "Start what this must be beside, or ask an operator about its affinity.",
    ),
    "spread": ("it must be spread evenly over {}", "Ask an operator about the topology spread constraint."),
}


@dataclass(frozen=True, slots=True)
class Scene:
    """A pod among all nodes: what keeps it off each, what the autoscaler may do, and what the scheduler said."""

    placement: Placement
    situations: Sequence[NodeSituation]
    growth: Growth
    said: str
    settled: bool

    @property
    def pool(self) -> str:
        return self.placement.pod.spec.node_selector.get(self.placement.around.pool_label, "")

    @property
    def of_pool(self) -> str:
        return f" of the pool {self.pool}" if self.pool else ""

    @property
    def link(self) -> str:
        return f"infrastructure:{self.pool}" if self.pool else "infrastructure"

    def none_to_use(self) -> Diagnosis:
        """Explain a pod whose demands exclude every node."""
        in_pool = [one for one in self.situations if all(obstacle.kind != "pool" for obstacle in one.obstacles)]
        if not self.situations or not in_pool:
            sentence = f"There is no node{self.of_pool}" if self.pool else "The cluster has no node"
            return self._without_nodes("no_such_node", sentence)
        missing = _first(in_pool, "selector", "affinity", "label")
        if not missing:
            return self._without_nodes("no_such_node", f"There is no node{self.of_pool} but those of the control plane")
        wanted = listed(
            dict.fromkeys(f"a label {one.subject}" if one.kind == "label" else one.subject for one in missing)
        )
        sentence = f"No node{self.of_pool} matches what this asks for: {wanted}"
        return self._without_nodes("not_selected", sentence)

    def room(self, free: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod that seems to fit: the scheduler has not tried again, or it knows more."""
        nodes = listed(names(free)) if count(free) < 3 else plural(count(free), "node")
        some = f"Node{'' if count(free) == 1 else 's'} {nodes}" if count(free) < 3 else nodes
        if not self.settled:
            return Diagnosis(
                "scheduling", f"{some} {_have(free)} room; looking.", "wait", "", _BY_ITSELF, is_normal=True
            )
        sentence = f"{some} {_have(free)} room for this, but the scheduler has not placed it there."
        step = "If this lasts, show an operator the messages below."
        return Diagnosis("unschedulable", sentence, "wait", "operator", step, link=self.link)

    def busy(self, waiting: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod that starts when something ends on one of these nodes."""
        sentence, growth = self._busy_words(waiting), self.growth
        if growth.is_starting:
            return Diagnosis(
                "scale_up", f"{sentence}; {growth.words}.", "wait", "", _BY_ITSELF, link=self.link, is_normal=True
            )
        if growth.is_out_of_stock and growth.may_help:
            sentence += "; the cloud could not deliver another node and is asked again after a while."
            step = "Choose a tier on another node pool, or wait."
            return Diagnosis("no_stock", sentence, "wait", "operator", step, link=self.link, is_normal=False)
        if growth.group is not None and growth.at_maximum:
            sentence += f"; the pool has as many nodes as it may have ({growth.group.maximum:,})."
            step = "Wait until something ends, choose another tier, or ask your admin for a larger pool."
            return Diagnosis("pool_full", sentence, "wait", "admin", step, link=self.link, is_normal=True)
        if growth.may_help and not growth.refused:
            return Diagnosis(
                "busy", f"{sentence}; {growth.words}.", "wait", "", _BY_ITSELF, link=self.link, is_normal=True
            )
        conflict = next((kind for kind in _CONFLICTS if all(kind in one.kinds for one in waiting)), "")
        if conflict:
            step = _CONFLICTS[conflict][1]
            return Diagnosis("conflict", f"{sentence}.", "wait", "operator", step, link=self.link)
        are_many = all(set(most([one], "full")) == {PODS} for one in waiting)
        other = "a tier on another node pool" if are_many else "a smaller tier"
        step = f"Wait until something ends, stop something that you do not need, or choose {other}."
        return Diagnosis("busy", f"{sentence}.", "wait", "you", step, link="executions", is_normal=True)

    def unready(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> Diagnosis:
        states = " or ".join(dict.fromkeys(one.subject for one in _first(nodes, "not_ready")))
        sentence = f"{self._these(nodes, usable)} {_be(nodes)} {states}{self._rest(nodes, usable)}"
        return self._without_nodes("not_ready", sentence, step="Ask an operator to look at the nodes.")

    def closed(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod that is kept off by a decision: a cordon, the autoscaler's removal or a taint."""
        cordoned = [
            one for one in nodes if not {"cordon", "leaving"}.isdisjoint(one.kinds) and "taint" not in one.kinds
        ]
        if cordoned:
            states = " or ".join(dict.fromkeys(one.subject for one in _first(cordoned, "cordon", "leaving")))
            sentence = f"{self._these(cordoned, usable)} {_be(cordoned)} {states}{self._rest(cordoned, usable)}"
            return self._without_nodes("cordoned", sentence, step="Ask an operator when the nodes take work again.")
        taints = list(dict.fromkeys(one.subject for one in _first(nodes, "taint")))
        by = f"the {'taint' if len(taints) == 1 else 'taints'} {listed(taints)}"
        sentence = f"{self._these(nodes, usable)} {_be(nodes)} kept for other work by {by}{self._rest(nodes, usable)}"
        return self._without_nodes("tainted", sentence, step="Choose another tier, or ask an operator about the taint.")

    def _places(self, volumes: Sequence[str]) -> str:
        """Return from which nodes volumes can be reached, where that is known: " (zone a)"."""
        known = [self.placement.volumes[one] for one in volumes if one in self.placement.volumes]
        places = dict.fromkeys(in_words(one).replace(f"{_ZONE}=", "zone ") for one in known)
        return f" ({listed([*places])})" if places else ""

    def never(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod that each of these open nodes keeps off for ever."""
        apart = list(dict.fromkeys(one.subject for one in _first(nodes, "volume")))
        if apart:
            reaching = [one for one in nodes if "volume" not in one.kinds]
            words = f"{listed(apart)}{self._places(apart)}"
            sentence = f"No node{self.of_pool} can reach {words}"
            if reaching:
                sentence = f"Only {plural(count(reaching), 'node')}{self.of_pool} can reach {words}, and {self._small(reaching)}"
            step = "Ask your admin to look at where the volume can be reached."
            return Diagnosis("volume", f"{sentence}.", "problem", "admin", step, link="project", is_normal=False)
        is_certain = len(_too_small(usable)) == len(usable)
        sentence, growth = self._too_small(nodes, is_certain=is_certain), self.growth
        if growth.fits and growth.group is not None and growth.at_maximum and not growth.is_starting:
            sentence += "; a new one would be, but the pool has as many nodes as it may have"
            step = "Choose another tier, or ask your admin for a larger pool."
            return Diagnosis("small_nodes", f"{sentence}.", "problem", "admin", step, link=self.link, is_normal=False)
        if growth.fits or not is_certain:
            return self._without_nodes("small_nodes", sentence)
        if growth.group is not None and not growth.is_too_small and growth.fits is None and not growth.at_maximum:
            sentence += "; how large a new node would be is not known"
        step = "Choose a smaller tier; tell your admin that this one fits no node."
        return Diagnosis("too_large", f"{sentence}.", "problem", "admin", step, link="tiers", is_normal=False)

    def _without_nodes(self, code: str, sentence: str, *, step: str = "") -> Diagnosis:
        """Finish a sentence about nodes that waiting alone does not open: another node may still come."""
        growth = self.growth
        if growth.is_starting:
            return Diagnosis(
                "scale_up", f"{sentence}; {growth.words}.", "wait", "", _BY_ITSELF, link=self.link, is_normal=True
            )
        if growth.is_out_of_stock and growth.may_help:
            sentence += "; the cloud could not deliver a new node and is asked again after a while."
            wait = "Choose a tier on another node pool, or wait."
            return Diagnosis("no_stock", sentence, "wait", "operator", wait, link=self.link, is_normal=False)
        if growth.may_help and not growth.refused:
            late = "If none comes, ask an operator to look at the node autoscaler."
            return Diagnosis(code, f"{sentence}; {growth.words}.", "wait", "operator", step or late, link=self.link)
        if growth.group is not None and growth.is_too_small and not growth.present:
            sentence += ", and a new one would be too small"
            step = "Choose a smaller tier; tell your admin that this one fits no node."
            return Diagnosis("too_large", f"{sentence}.", "problem", "admin", step, link="tiers", is_normal=False)
        if growth.group is not None and growth.at_maximum:
            sentence += f"; the pool may have {plural(growth.group.maximum, 'node')}"
        elif growth.refused:
            sentence += "; the autoscaler starts none"
        who: Who = "operator" if step else "admin"
        step = step or "Choose another tier; tell your admin that no node takes this one."
        link = self.link if who == "operator" else "tiers"
        return Diagnosis(code, f"{sentence}.", "problem", who, step, link=link, is_normal=False)

    def _busy_words(self, waiting: Sequence[NodeSituation]) -> str:
        full = [one for one in waiting if "full" in one.kinds]
        free = most(full, "full")
        if len(full) == len(waiting) and set(free) == {PODS}:
            return f"{self._may_use(full)} {'runs as many pods as it may' if count(full) == 1 else 'run as many pods as they may'}"
        if len(full) == len(waiting):
            return f"{self._may_use(full)} {_be(full)} full: this needs {self._lacking(full, free)}"
        kinds = [kind for kind in _CONFLICTS if any(kind in one.kinds for one in waiting)]
        words = [_conflict_words(kind, waiting) for kind in kinds]
        if full:
            words.append(plural(count(full), "is full", "are full"))
        return f"{self._may_use(waiting)} {_have(waiting)} no place for it: {listed(words)}"

    def _lacking(self, full: Sequence[NodeSituation], free: dict[str, int]) -> str:
        """Return what is needed and what is free; numbers only where all nodes lack the same."""
        has, needs = compared(free, {**self.placement.needs, PODS: 1})
        if _differ(full, "full"):
            return f"{needs}, none has all of it free"
        if count(full) == 1:
            return f"{needs}, it has {has} free"
        return f"{needs}, they have {has} free" if not any(free.values()) else f"{needs}, none has more than {has} free"

    def _may_use(self, nodes: Sequence[NodeSituation]) -> str:
        return f"{_every(count(nodes), 'The only', 'The')} node{'' if count(nodes) == 1 else 's'}{self.of_pool} that may take this"

    def _too_small(self, nodes: Sequence[NodeSituation], *, is_certain: bool) -> str:
        has, needs = compared(most(nodes, "too_small"), self.placement.needs)
        beside = " beside its own pods" if any(one.beside_own for one in _first(nodes, "too_small")) else ""
        largest = f"the largest has {has}{beside}"
        if _differ(nodes, "too_small"):
            largest = "none has all of it"
        of_all = (
            "is large enough for this, not even an empty one"
            if is_certain
            else "that is open to this now is large enough"
        )
        return f"No node{self.of_pool} {of_all}: it needs {needs}, {largest}"

    def _small(self, nodes: Sequence[NodeSituation]) -> str:
        has, needs = compared(most(nodes, "too_small"), self.placement.needs)
        if count(nodes) == 1:
            return f"it is too small: this needs {needs}, it has {has}"
        return f"they are too small: this needs {needs}"

    def _these(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> str:
        if count(nodes) == 1:
            only = ", the only one that this may use," if count(usable) == 1 < count(self.situations) else ""
            others_are_small = count(_too_small(usable)) == count(usable) - 1 > 0 and not _too_small(nodes)
            large = " is the only one large enough, but it" if others_are_small else ""
            return f"Node {nodes[0].nodes[0].metadata.name}{self.of_pool}{only}{large}"
        if count(nodes) == count(usable):
            return f"{_every(count(nodes), '', 'All')} nodes{self.of_pool}"
        return f"{count(nodes):,} nodes{self.of_pool} that could take this"

    def _rest(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> str:
        """Return what is the matter with the other nodes that the pod may use."""
        these = {id(one) for one in nodes}
        others = [one for one in usable if id(one) not in these]
        if not others:
            return ""
        counts = [
            f"{count(some):,} {_be(some)} {words}"
            for words, some in (
                ("too small", _too_small(others)),
                ("not ready", [one for one in others if "not_ready" in one.kinds]),
                ("cordoned or tainted", [one for one in others if not CLOSED.isdisjoint(one.kinds)]),
            )
            if some
        ]
        return f"; of the others, {listed(counts)}" if counts else ""


def _conflict_words(kind: str, waiting: Sequence[NodeSituation]) -> str:
    """Return what stands between pods on these nodes; what differs from node to node is in the table."""
    subjects = list(dict.fromkeys(one.subject for one in _first(waiting, kind)))
    if kind == "apart" and len(subjects) > 1:
        return "each already runs a pod that must be apart from this"
    words = _CONFLICTS[kind][0].format(subjects[0])
    return words.replace("each", "it", 1) if count(waiting) == 1 else words


def _every(count: int, one: str, many: str) -> str:
    """Return "The only", "Both", "The 3"."""
    return one if count == 1 else "Both" if count == 2 else f"{many} {count:,}"


def _first(nodes: Sequence[NodeSituation], *kinds: str) -> list[Obstacle]:
    return [obstacle for one in nodes for obstacle in one.obstacles if obstacle.kind in kinds]


def _differ(nodes: Sequence[NodeSituation], kind: str) -> bool:
    """Return whether some of the nodes lack other resources than the rest."""
    return len({frozenset([each.subject for each in one.obstacles if each.kind == kind]) for one in nodes}) > 1


def _too_small(nodes: Sequence[NodeSituation]) -> list[NodeSituation]:
    return [one for one in nodes if "too_small" in one.kinds]


def _be(nodes: Sequence[NodeSituation]) -> str:
    return "is" if count(nodes) == 1 else "are"


def _have(nodes: Sequence[NodeSituation]) -> str:
    return "has" if count(nodes) == 1 else "have"
