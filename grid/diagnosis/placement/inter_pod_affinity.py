"""What other pods mean for a pod's place: affinity, anti-affinity (its own and theirs) and even spread, as the scheduler counts them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from grid.core.translation import gettext as _
from grid.core.wording import listed
from grid.diagnosis.placement.spread import Spread
from grid.diagnosis.placement.surroundings import SchedulingContext
from grid.diagnosis.places import untolerated
from grid.diagnosis.requests import holds_a_node
from grid.diagnosis.selectors import matches_labels, matches_terms, selector_in_words
from grid.kube.objects import Node, Pod
from grid.kube.slim import LabelSelector, PodAffinity, PodAffinityTerm, SpreadConstraint

BetweenKind = Literal["apart", "beside", "spread"]
Between = tuple[BetweenKind, str, str]
"""A rule that is broken, what it is about in words, and the label whose value makes nodes one place to it."""
_Domain = tuple[str, str]
"""A topology key and one of its values."""


def counted_by(pod: Pod) -> tuple[str, ...]:
    """Return the labels without which a node cannot take the pod, because it has to be counted by them."""
    affinity = pod.spec.affinity
    affine = _terms(affinity.pod_affinity if affinity else None)
    keys = [*(term.topology_key for term in affine), *(term.topology_key for term in _hard(pod))]
    return tuple(dict.fromkeys(keys))


class InterPodAffinity:
    """The rules between one pod and those on nodes. Pods are gone through once, and only when the pod or somebody's anti-affinity asks for
    it; nodes of the same topology domains are judged once."""

    def __init__(self, pod: Pod, scheduling: SchedulingContext, groups: Sequence[Sequence[Node]]) -> None:
        """`groups` are all nodes, in groups that do not differ in what the pod asks of a node."""
        affinity = pod.spec.affinity
        self._pod, self._scheduling, self._groups = pod, scheduling, groups
        self._apart = _terms(affinity.pod_anti_affinity if affinity else None)
        self._beside = _terms(affinity.pod_affinity if affinity else None)
        self._spread = _hard(pod)
        self._known: dict[tuple[str | None, ...], tuple[Between, ...]] = {}

    def obstacles(self, node: Node) -> tuple[Between, ...]:
        """Return the rules that the pod would break on the node, in words."""
        keys = self._keys
        if not keys:
            return ()
        domains = tuple(map(node.metadata.labels.get, keys))
        broken = self._known.get(domains)
        if broken is None:
            broken = self._known[domains] = tuple(self._broken(node.metadata.labels))
        return broken

    def _broken(self, labels: Mapping[str, str]) -> Iterator[Between]:
        separated = self._anti_affine_domains
        yield from (("apart", separated[domain], domain[0]) for domain in labels.items() if domain in separated)
        if self._beside and (self._affine_domains or not self._begins_its_own_company):
            # A pod counts only if all terms select it, so a node may lack company though pods of each term are there.
            company = listed(dict.fromkeys(selector_in_words(term.label_selector) for term in self._beside))
            for key in dict.fromkeys(term.topology_key for term in self._beside):
                if (key, labels.get(key, "")) not in self._affine_domains:
                    yield "beside", company, key
        for spread in self.spreads:
            value = labels.get(spread.key, "")
            if spread.is_broken_in(value):
                yield "spread", spread.words_of_node(value), spread.key

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        """The labels that decide: none, when no node is closed to the pod because of other pods."""
        return tuple(dict.fromkeys([*(key for key, _ in self._anti_affine_domains), *counted_by(self._pod)]))

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.metadata.name: node for node in self._scheduling.nodes}

    def _on_nodes(self, pods: Iterable[Pod]) -> Iterator[tuple[Pod, Node]]:
        nodes = self._nodes
        for pod in pods:
            if (node := nodes.get(pod.spec.node_name)) is not None and holds_a_node(pod):
                yield pod, node

    @cached_property
    def _anti_affine_domains(self) -> dict[_Domain, str]:
        """Where the pod may not be: beside pods that it must be apart from, and beside pods that must be apart from it."""
        domains: dict[_Domain, str] = {}
        if self._apart:
            for other, node in self._on_nodes(self._scheduling.pods()):
                for term in self._apart:
                    if _selects(term, self._pod, other):
                        labels = selector_in_words(term.label_selector)
                        _add(domains, term, node, _("{labels}, which this must be apart from", labels=labels))
        strangers = self._scheduling.room.keeping_apart()
        for other, node in self._on_nodes(strangers) if strangers else ():
            for term in _terms(other.spec.affinity.pod_anti_affinity if other.spec.affinity else None):
                if _selects(term, other, self._pod):
                    words = self._scheduling.holder(other) or _("pod {name}", name=other.metadata.name)
                    _add(domains, term, node, _("{pod}, which must be apart from this", pod=words))
        return domains

    @cached_property
    def _affine_domains(self) -> set[_Domain]:
        return {
            (term.topology_key, value)
            for other, node in self._on_nodes(self._scheduling.pods())
            if all(_selects(term, self._pod, other) for term in self._beside)
            for term in self._beside
            if (value := node.metadata.labels.get(term.topology_key)) is not None
        }

    @property
    def _begins_its_own_company(self) -> bool:
        """The first pod of a group that wants to be together may go anywhere."""
        return all(_selects(term, self._pod, self._pod) for term in self._beside)

    @cached_property
    def spreads(self) -> list[Spread]:
        """The constraints on an even spread with what they count."""
        spreads = []
        for constraint in self._spread:
            group, least = self._group(constraint), constraint.min_domains or 1
            counts, is_alike = self._count(constraint, group), matches_labels(group, self._pod.metadata.labels)
            spreads.append(Spread(constraint.topology_key, counts, constraint.max_skew, least, is_alike))
        return spreads

    def _count(self, constraint: SpreadConstraint, group: LabelSelector | None) -> Counter[str]:
        namespace = self._pod.metadata.namespace
        own = (pod for pod in self._scheduling.pods() if pod.metadata.namespace == namespace and holds_a_node(pod))
        staying = (pod for pod in own if pod.metadata.deletion_timestamp is None)
        on_node = Counter(pod.spec.node_name for pod in staying if matches_labels(group, pod.metadata.labels))
        counts = Counter[str]()
        for nodes in self._groups:
            if self._counts(constraint, nodes[0]):
                for node in nodes:
                    counts[node.metadata.labels[constraint.topology_key]] += on_node.get(node.metadata.name, 0)
        return counts

    def _counts(self, constraint: SpreadConstraint, node: Node) -> bool:
        spec, labels = self._pod.spec, node.metadata.labels
        if any(spread.topology_key not in labels for spread in self._spread):
            return False
        if constraint.node_affinity_policy == "Honor":
            affinity = spec.affinity.node_affinity if spec.affinity else None
            if any(labels.get(key) != value for key, value in spec.node_selector.items()):
                return False
            if affinity and affinity.required and not matches_terms(affinity.required, node):
                return False
        return constraint.node_taints_policy == "Ignore" or not untolerated(node.spec.taints, spec.tolerations)

    def _group(self, constraint: SpreadConstraint) -> LabelSelector | None:
        """Return which pods the constraint counts: those that it selects, with the pod's own values of the keys that it names."""
        selector, mine = constraint.label_selector, self._pod.metadata.labels
        same = {key: mine[key] for key in constraint.match_label_keys or () if key in mine}
        if selector is None or not same:
            return selector
        return msgspec.structs.replace(selector, match_labels={**(selector.match_labels or {}), **same})


def _hard(pod: Pod) -> list[SpreadConstraint]:
    return [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]


def _terms(affinity: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    return (affinity.required or ()) if affinity else ()


def _selects(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """Return True when a term of `owner` selects `other`. Labels of namespaces are not known: a selector by them selects none."""
    of_namespaces = term.namespace_selector
    everywhere = of_namespaces is not None and not (of_namespaces.match_labels or of_namespaces.match_expressions)
    namespaces = term.namespaces or (() if of_namespaces else (owner.metadata.namespace,))
    is_there = everywhere or other.metadata.namespace in namespaces
    return is_there and matches_labels(term.label_selector, other.metadata.labels)


def _add(domains: dict[_Domain, str], term: PodAffinityTerm, node: Node, words: str) -> None:
    value = node.metadata.labels.get(term.topology_key)
    if value is not None:
        domains.setdefault((term.topology_key, value), words)
