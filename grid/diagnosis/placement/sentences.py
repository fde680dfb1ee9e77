"""The sentence for each reason why a pod has no node: what is so, whether that is normal, who can act, and what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from grid.core.translation import gettext as _, ngettext
from grid.core.wording import duration, listed, plural
from grid.diagnosis.diagnosis import Diagnosis, Who, since
from grid.diagnosis.karpenter import NODE_SHOULD_BE_THERE
from grid.diagnosis.placement.conflicts import STEPS, conflicts, step_for
from grid.diagnosis.placement.growth import Growth
from grid.diagnosis.placement.obstacles import CLOSED, FOREIGN, NodeSituation, Obstacle, Placement, without
from grid.diagnosis.placement.rows import count, most, names
from grid.diagnosis.placement.spread import HOSTNAME
from grid.diagnosis.placement.surroundings import absent_words
from grid.diagnosis.places import STARTING_STATES, is_for_other_work, remover_of
from grid.diagnosis.resources import PODS, amount_words, compared
from grid.diagnosis.scheduling import cloud_words, with_untried_groups
from grid.diagnosis.selectors import in_words, matches_terms
from grid.kube.objects import Metadata

_ZONE = "topology.kubernetes.io/zone"
_BY_ITSELF = _("Nothing to do: it starts by itself.")


@dataclass(frozen=True, slots=True)
class Scene:
    """A pod among all nodes: what keeps it off each, what the autoscaler may do, and what the scheduler said (`message`)."""

    placement: Placement
    situations: Sequence[NodeSituation]
    growth: Growth
    message: str
    settled: bool
    now: datetime

    @property
    def pool(self) -> str:
        return self.placement.pool

    @property
    def of_pool(self) -> str:
        return _(" of the pool {pool}", pool=self.pool) if self.pool else ""

    @property
    def link(self) -> str:
        return f"infrastructure:{self.pool}" if self.pool else "infrastructure"

    def none_to_use(self) -> Diagnosis:
        """Explain a pod whose demands exclude every node."""
        in_pool = without(self.situations, "pool")
        if not in_pool:
            is_empty = not self.situations and self.growth.group is None
            sentence = _("The cluster has no node") if is_empty or not self.pool else _("There is no node{of_pool}")
            step = _("Ask an operator to look at why there is none.") if is_empty else ""
            return self._without_nodes("no_such_node", sentence.format(of_pool=self.of_pool), step=step)
        missing = _first(in_pool, "selector", "affinity", "label")
        if not missing:
            sentence = _("There is no node{of_pool} but those of the control plane", of_pool=self.of_pool)
            return self._without_nodes("no_such_node", sentence)
        label = _("a label {label}")
        asked = [label.format(label=each.subject) if each.kind == "label" else each.subject for each in missing]
        wanted = listed(dict.fromkeys(asked))
        sentence = _("No node{of_pool} matches what this asks for: {wanted}", of_pool=self.of_pool, wanted=wanted)
        return self._without_nodes("not_selected", sentence)

    def room(self, free: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod that seems to fit: the scheduler has not tried again, or it knows more."""
        number = count(free)
        nodes = plural(number, "node", "nodes")
        if number < 3:
            nodes = ngettext("Node {nodes}", "Nodes {nodes}", number, nodes=listed(names(free)))
        if not self.settled:
            sentence = ngettext("{nodes} has room; looking.", "{nodes} have room; looking.", number, nodes=nodes)
            return Diagnosis("scheduling", sentence, "wait", "", _BY_ITSELF, is_normal=True)
        singular = _("{nodes} has room for this, but the scheduler has not placed it there.")
        several = _("{nodes} have room for this, but the scheduler has not placed it there.")
        sentence = ngettext(singular, several, number, nodes=nodes)
        step = _("If this lasts, show an operator the messages below.")
        return Diagnosis("unschedulable", sentence, "wait", "operator", step, link=self.link)

    def busy(self, waiting: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod that starts when something ends on one of these nodes."""
        sentence, growth = self._busy_words(waiting), self.growth
        starting = [] if growth.is_starting else _starting(without(self.situations, *FOREIGN))
        coming = _("node {name} is still starting", name=starting[0][0].name) if starting else growth.words
        if starting or growth.is_starting or (growth.may_help and not growth.refused and not growth.is_out_of_stock):
            code = "scale_up" if growth.is_starting else "busy"
            return Diagnosis(code, f"{sentence}; {coming}.", "wait", "", _BY_ITSELF, link=self.link, is_normal=True)
        if growth.is_out_of_stock and growth.may_help:
            return self._no_stock(sentence, _("another node"))
        if growth.group is not None and growth.at_maximum:
            sentence += _("; the pool has as many nodes as it may have ({maximum:,}).", maximum=growth.group.maximum)
            step = _("Wait until something ends, choose another tier, or ask your admin for a larger pool.")
            return Diagnosis("pool_full", sentence, "wait", "admin", step, link=self.link, is_normal=True)
        conflict = next((kind for kind in STEPS if all(kind in situation.kinds for situation in waiting)), "")
        if conflict:
            step = step_for(conflict, self.placement, self.situations)
            return Diagnosis("conflict", f"{sentence}.", "wait", "operator", step, link=self.link)
        step = _("Wait until something ends, stop something that you do not need, or choose a smaller tier.")
        if all(set(most([situation], "full")) == {PODS} for situation in waiting):
            step = _(
                "Wait until something ends, stop something that you do not need, or choose a tier on another node pool."
            )
        busy = Diagnosis("busy", f"{sentence}.", "wait", "you", step, link="executions", is_normal=True)
        return busy if growth.group else with_untried_groups(busy, growth.refused)

    def held_up(self) -> Diagnosis | None:
        """Explain a pod by a node that would take it, but has been starting for too long; None while another has room or is coming."""
        usable = without(self.situations, *FOREIGN)
        held = [situation for situation in usable if _starting([situation])]
        late = [each for each in _starting(held) if since(each[0].creation_timestamp, self.now) > NODE_SHOULD_BE_THERE]
        if not late or self.growth.is_starting or not all(situation.obstacles for situation in usable):
            return None
        node, key = late[0]
        age, who, rest = duration(since(node.creation_timestamp, self.now)), remover_of(key), self._rest(held, usable)
        sentence = _("Node {name} ({age} old) would fit, but {who} has not removed its startup taint {key}{rest}.")
        sentence = sentence.format(name=node.name, age=age, who=who, key=key, rest=rest)
        step, link = _("Ask an operator to look at {who} and at the node.", who=who), f"node:{node.name}"
        return Diagnosis("not_ready", sentence, "problem", "operator", step, link=link, is_normal=False)

    def unready(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> Diagnosis:
        sentence = self._are(nodes, usable, "not_ready")
        if _starting(nodes) and not self.growth.is_starting:
            return Diagnosis("not_ready", f"{sentence}.", "wait", "", _BY_ITSELF, link=self.link, is_normal=True)
        return self._without_nodes("not_ready", sentence, step=_("Ask an operator to look at the nodes."))

    def broken(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod whose devices are there but do not work: an operator repairs the driver or the device plugin."""
        obstacles, needed = _first(nodes, "broken"), self.placement.needs
        if not all(obstacle.size for obstacle in obstacles):
            return self._without_gpus(nodes, usable)
        devices = listed(dict.fromkeys(amount_words(each.subject, each.size) for each in obstacles))
        working = max(each.free for each in obstacles)
        resource = listed(dict.fromkeys(each.subject for each in obstacles))
        numbers = ngettext("{working:,} of them works", "{working:,} of them work", working, working=working)
        if not working:
            numbers = _("none of them works")
        needs = listed(dict.fromkeys(amount_words(each.subject, needed[each.subject]) for each in obstacles))
        named = listed(names(nodes, 2)) if count(nodes) <= 2 else plural(count(nodes), "node", "nodes")
        singular = _("Node {nodes} has {devices}, but {numbers} ({resource}); this needs {needs}{others}")
        several = _("{nodes} have devices that do not work ({resource}); this needs {needs}{others}")
        more = {"nodes": named, "devices": devices, "numbers": numbers, "others": self._rest(nodes, usable)}
        sentence = ngettext(singular, several, count(nodes), resource=resource, needs=needs, **more)
        step = _("Ask an operator to look at the device plugin and the driver on {nodes}.", nodes=named)
        return self._without_nodes("broken_devices", sentence, step=step)

    def _without_gpus(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod whose nodes offer no GPU, but have some by their labels: those of new ones come with the driver, in minutes."""
        forms = _("{nodes} does not offer its GPUs{others}"), _("{nodes} do not offer their GPUs{others}")
        sentence = ngettext(*forms, count(nodes), nodes=self._these(nodes, usable), others=self._rest(nodes, usable))
        created = (node.metadata.creation_timestamp for situation in nodes for node in situation.nodes)
        if any(since(at, self.now) < NODE_SHOULD_BE_THERE for at in created):
            sentence = _("{sentence} yet: driver and device plugin of a new node take a few minutes", sentence=sentence)
            return Diagnosis("not_ready", f"{sentence}.", "wait", "", _BY_ITSELF, link=self.link, is_normal=True)
        step = _("Ask an operator to look at the device plugin and the driver there.")
        return self._without_nodes("broken_devices", sentence, step=step)

    def closed(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod that is kept off by a decision: a cordon, the autoscaler's removal or a taint."""
        untainted = without(nodes, "taint")
        if cordoned := [each for each in untainted if not {"cordon", "leaving"}.isdisjoint(each.kinds)]:
            sentence = self._are(cordoned, usable, "cordon", "leaving")
            return self._without_nodes("cordoned", sentence, step=_("Ask an operator when the nodes take work again."))
        taints = list(dict.fromkeys(obstacle.subject for obstacle in _first(nodes, "taint")))
        keys = [taint.partition("=")[0] for taint in taints]
        state = _("kept for other work") if all(map(is_for_other_work, keys)) else _("closed to this")
        forms = _("{nodes} is {state} by {taints}{others}"), _("{nodes} are {state} by {taints}{others}")
        words = ngettext("the taint {taints}", "the taints {taints}", len(taints), taints=listed(taints))
        these, others = self._these(nodes, usable), self._rest(nodes, usable)
        sentence = ngettext(*forms, count(nodes), nodes=these, state=state, taints=words, others=others)
        step = _("Choose another tier, or ask an operator about the taint.")
        return self._without_nodes("tainted", sentence, step=step)

    def _are(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation], *kinds: str) -> str:
        """Return in which states these nodes are, by their obstacles of these kinds, and what is the matter with the others."""
        states = _(" or ").join(dict.fromkeys(obstacle.subject for obstacle in _first(nodes, *kinds)))
        forms, others = (_("{nodes} is {states}{others}"), _("{nodes} are {states}{others}")), self._rest(nodes, usable)
        return ngettext(*forms, count(nodes), nodes=self._these(nodes, usable), states=states, others=others)

    def never(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> Diagnosis:
        """Explain a pod that each of these open nodes keeps off for ever."""
        apart = list(dict.fromkeys(obstacle.subject for obstacle in _first(nodes, "volume")))
        if apart:
            reaching, known = without(nodes, "volume"), self.placement.volumes
            places = [in_words(known[words]) for words in apart if words in known]
            for key, word in ((_ZONE, _("zone ")), (HOSTNAME, _("node "))):
                places = [place.replace(f"{key}=", word) for place in places]
            volumes = listed(apart) + (f" ({listed(dict.fromkeys(places))})" if places else "")
            sentence = _("No node{of_pool} can reach {volumes}", of_pool=self.of_pool, volumes=volumes)
            every = [node for situation in self.situations for node in situation.nodes]
            if any(words in known and not any(matches_terms(known[words], node) for node in every) for words in apart):
                sentence = _("{sentence}: the cluster has no node there now", sentence=sentence)
            if reaching:
                only, trouble = plural(count(reaching), "node", "nodes"), self._small(reaching)
                sentence = _("Only {nodes}{of_pool} can reach {volumes}, and {trouble}")
                sentence = sentence.format(nodes=only, of_pool=self.of_pool, volumes=volumes, trouble=trouble)
            step = _("Ask your admin to look at where the volume can be reached.")
            return Diagnosis("volume", f"{sentence}.", "problem", "admin", step, link="project", is_normal=False)
        is_certain = len(_too_small(usable)) == len(usable)
        every = [node for situation in self.situations for node in situation.nodes]
        if absent := absent_words(self.placement.needs, every):
            words = _(" or ").join(absent.values())
            return self._without_devices(_("No node has {absent}, which this needs", absent=words))
        sentence, growth = self._too_small(nodes, is_certain=is_certain), self.growth
        if growth.fits and growth.group is not None and growth.at_maximum and not growth.is_starting:
            sentence += _("; a new one would be, but the pool has as many nodes as it may have")
            step = _("Choose another tier, or ask your admin for a larger pool.")
            return Diagnosis("small_nodes", f"{sentence}.", "problem", "admin", step, link=self.link, is_normal=False)
        if growth.fits or not is_certain:
            return self._without_nodes("small_nodes", sentence)
        if growth.group is not None and not growth.is_too_small and growth.fits is None and not growth.at_maximum:
            sentence += _("; how large a new node would be is not known")
        step = _("Choose a smaller tier; tell your admin that this one fits no node.")
        return Diagnosis("too_large", f"{sentence}.", "problem", "admin", step, link="tiers", is_normal=False)

    def _without_devices(self, absent: str) -> Diagnosis:
        """Explain a pod that needs what no node has: a smaller tier of the same kind would not help."""
        growth = self.growth
        if growth.fits or growth.is_starting or (growth.is_out_of_stock and growth.may_help):
            return self._without_nodes("small_nodes", absent)
        step = _("Choose a tier that does not need it, or ask your admin for nodes that have it.")
        return Diagnosis("too_large", f"{absent}.", "problem", "admin", step, link="tiers", is_normal=False)

    def _without_nodes(self, code: str, sentence: str, *, step: str = "") -> Diagnosis:
        """Finish a sentence about nodes that waiting alone does not open: another node may still come."""
        growth = self.growth
        if growth.is_starting:
            sentence = f"{sentence}; {growth.words}."
            return Diagnosis("scale_up", sentence, "wait", "", _BY_ITSELF, link=self.link, is_normal=True)
        if growth.is_out_of_stock and growth.may_help:
            return self._no_stock(sentence, _("a new node"))
        if growth.may_help and not growth.refused:
            late = _("If none comes, ask an operator to look at the node autoscaler.")
            return Diagnosis(code, f"{sentence}; {growth.words}.", "wait", "operator", step or late, link=self.link)
        if growth.group is not None and growth.is_too_small and not growth.present:
            sentence += _(", and a new one would be too small")
            step = _("Choose a smaller tier; tell your admin that this one fits no node.")
            return Diagnosis("too_large", f"{sentence}.", "problem", "admin", step, link="tiers", is_normal=False)
        if growth.group is not None and growth.at_maximum:
            sentence += _("; the pool may have {nodes}", nodes=plural(growth.group.maximum, "node", "nodes"))
        elif growth.refused:
            sentence += _("; the autoscaler starts none")
        who: Who = "operator" if step else "admin"
        step = step or _("Choose another tier; tell your admin that no node takes this one.")
        link = self.link if who == "operator" else "tiers"
        return Diagnosis(code, f"{sentence}.", "problem", who, step, link=link, is_normal=False)

    def _no_stock(self, sentence: str, node: str) -> Diagnosis:
        clause, severity, who, step = cloud_words(self.growth.errors, node)
        return Diagnosis("no_stock", f"{sentence}; {clause}.", severity, who, step, link=self.link, is_normal=False)

    def _busy_words(self, waiting: Sequence[NodeSituation]) -> str:
        full = [situation for situation in waiting if "full" in situation.kinds]
        free, number, nodes = most(full, "full"), count(waiting), self._may_use(waiting)
        forms, needs = (_("{nodes} is full: this needs {needs}"), _("{nodes} are full: this needs {needs}")), ""
        if not all(situation.kinds == {"full"} for situation in waiting):
            forms = _("{nodes} has no place for it: {needs}"), _("{nodes} have no place for it: {needs}")
            needs = conflicts(self.placement, waiting, self.situations)
        elif set(free) == {PODS}:
            forms = _("{nodes} runs as many pods as it may"), _("{nodes} run as many pods as they may")
        else:
            needs = self._lacking(full, free)
        return ngettext(*forms, number, nodes=nodes, needs=needs)

    def _lacking(self, full: Sequence[NodeSituation], free: dict[str, int]) -> str:
        """Return what is needed and what is free; numbers only where all nodes lack the same."""
        has, needs = compared(free, {**self.placement.needs, PODS: 1})
        if _differ(full, "full"):
            return _("{needs}, none has all of it free", needs=needs)
        words = (
            _("{needs}, none has more than {has} free") if any(free.values()) else _("{needs}, they have {has} free")
        )
        if count(full) == 1:
            words = _("{needs}, it has {has} free")
        return words.format(needs=needs, has=has)

    def _may_use(self, nodes: Sequence[NodeSituation]) -> str:
        if count(nodes) == 2:
            return _("Both nodes{of_pool} that may take this", of_pool=self.of_pool)
        forms = _("The only node{of_pool} that may take this"), _("The {count:,} nodes{of_pool} that may take this")
        return ngettext(*forms, count(nodes), of_pool=self.of_pool)

    def _too_small(self, nodes: Sequence[NodeSituation], *, is_certain: bool) -> str:
        has, needs = compared(most(nodes, "too_small"), self.placement.needs)
        is_beside_own = any(obstacle.beside_own for obstacle in _first(nodes, "too_small"))
        beside_own = _(" beside its own pods") if is_beside_own else ""
        largest = _("the largest has {has}{beside}", has=has, beside=beside_own)
        if _differ(nodes, "too_small"):
            largest = _("none has all of it")
        sentence = _("No node{of_pool} that is open to this now is large enough: it needs {needs}, {largest}")
        if is_certain:
            sentence = _(
                "No node{of_pool} is large enough for this, not even an empty one: it needs {needs}, {largest}"
            )
        return sentence.format(of_pool=self.of_pool, needs=needs, largest=largest)

    def _small(self, nodes: Sequence[NodeSituation]) -> str:
        has, needs = compared(most(nodes, "too_small"), self.placement.needs)
        if count(nodes) == 1:
            return _("it is too small: this needs {needs}, it has {has}", needs=needs, has=has)
        return _("they are too small: this needs {needs}", needs=needs)

    def _these(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> str:
        if count(nodes) == 1:
            only = _(", the only one that this may use,") if count(usable) == 1 < count(self.situations) else ""
            others_are_small = count(_too_small(usable)) == count(usable) - 1 > 0 and not _too_small(nodes)
            large = _(" is the only one large enough, but it") if others_are_small else ""
            name = nodes[0].nodes[0].metadata.name
            return _("Node {name}{of_pool}{only}{large}", name=name, of_pool=self.of_pool, only=only, large=large)
        if count(nodes) == count(usable):
            every = _("Both nodes{of_pool}") if count(nodes) == 2 else _("All {nodes:,} nodes{of_pool}")
            return every.format(nodes=count(nodes), of_pool=self.of_pool)
        return _("{nodes:,} nodes{of_pool} that could take this", nodes=count(nodes), of_pool=self.of_pool)

    def _rest(self, nodes: Sequence[NodeSituation], usable: Sequence[NodeSituation]) -> str:
        """Return what is the matter with the other nodes that the pod may use."""
        these = {id(situation) for situation in nodes}
        others = [situation for situation in usable if id(situation) not in these]
        full = sum(len(situation.nodes) for situation in others if situation.kinds == {"full"})
        kinds = ({"too_small"}, {"not_ready"}, {"broken"}, CLOSED)
        small, unready, broken, closed = (count(others) - count(without(others, *each)) for each in kinds)
        counted = (
            (full, ngettext("{count:,} is full", "{count:,} are full", full)),
            (small, ngettext("{count:,} is too small", "{count:,} are too small", small)),
            (unready, ngettext("{count:,} is not ready", "{count:,} are not ready", unready)),
            (broken, ngettext("{count:,} has broken devices", "{count:,} have broken devices", broken)),
            (closed, ngettext("{count:,} is cordoned or tainted", "{count:,} are cordoned or tainted", closed)),
        )
        counts = [words for number, words in counted if number]
        return _("; of the others, {counts}", counts=listed(counts)) if counts else ""


def _starting(nodes: Sequence[NodeSituation]) -> list[tuple[Metadata, str]]:
    """Return the nodes that only wait for something of their own, each with the startup taint that tells it."""
    new = (situation for situation in nodes if {each.subject for each in situation.obstacles} <= STARTING_STATES)
    taints = ((node.metadata, taint.key) for situation in new for node in situation.nodes for taint in node.spec.taints)
    return [(node, key) for node, key in taints if remover_of(key)]


def _first(nodes: Sequence[NodeSituation], *kinds: str) -> list[Obstacle]:
    return [obstacle for situation in nodes for obstacle in situation.obstacles if obstacle.kind in kinds]


def _differ(nodes: Sequence[NodeSituation], kind: str) -> bool:
    """Return whether some of the nodes lack other resources than the rest."""
    return len({frozenset(each.subject for each in _first([situation], kind)) for situation in nodes}) > 1


def _too_small(nodes: Sequence[NodeSituation]) -> list[NodeSituation]:
    return [situation for situation in nodes if "too_small" in situation.kinds]
