"""Affinity between pods: required terms as a filter, preferred ones as a score, in both directions.

A pod's own terms say near which pods it wants to be or not to be; the terms of the pods that are there already speak about it too.
"Near" is the same value of a node label, the term's topology key.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grid.sandbox.client import labels_of, namespace_of
from grid.sandbox.controllers.scheduling.filters import Objection
from grid.sandbox.controllers.scheduling.snapshot import NodeState, Snapshot
from grid.sandbox.controllers.selectors import matches_labels

Side = Literal["podAffinity", "podAntiAffinity"]
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_NO_FRIEND = Objection(("node(s) didn't match pod affinity rules",), helpless=True)
_FOE_THERE = Objection(("node(s) didn't match pod anti-affinity rules",), helpless=False)
_UNWELCOME = Objection(("node(s) didn't satisfy existing pods anti-affinity rules",), helpless=False)
# A required term of a pod that is there attracts what it names as much as a preferred one of this weight.
_REQUIRED_WEIGHT = 1

Place = tuple[str, str]
"""A topology key and a node's value of it."""


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One term of a pod's affinity. `namespaces` are those that it names, or the pod's own when it names none."""

    key: str
    selector: Mapping[str, Any] | None
    namespaces: frozenset[str]
    namespace_selector: Mapping[str, Any] | None
    weight: int

    def matches(self, pod: Mapping[str, Any], snapshot: Snapshot) -> bool:
        namespace = namespace_of(pod)
        if namespace not in self.namespaces:
            labels = snapshot.namespaces.get(namespace) or {}
            if self.namespace_selector is None or not matches_labels(self.namespace_selector, labels):
                return False
        return matches_labels(self.selector, labels_of(pod))


def required_terms(pod: Mapping[str, Any], side: Side) -> list[PodTerm]:
    return [_term(pod, term, _REQUIRED_WEIGHT) for term in _side(pod, side).get(_REQUIRED) or ()]


def preferred_terms(pod: Mapping[str, Any], side: Side) -> list[PodTerm]:
    listed = _side(pod, side).get(_PREFERRED) or ()
    return [_term(pod, item.get("podAffinityTerm") or {}, item.get("weight", 0)) for item in listed]


def _side(pod: Mapping[str, Any], side: Side) -> Mapping[str, Any]:
    return (pod["spec"].get("affinity") or {}).get(side) or {}


def _term(pod: Mapping[str, Any], term: Mapping[str, Any], weight: int) -> PodTerm:
    namespaces, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    named = namespaces if namespaces or selector is not None else (namespace_of(pod),)
    return PodTerm(term.get("topologyKey", ""), narrowed(pod, term), frozenset(named), selector, weight)


def narrowed(pod: Mapping[str, Any], term: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a term's label selector, with the pod's own values of the keys in `matchLabelKeys` and `mismatchLabelKeys`."""
    selector: Mapping[str, Any] | None = term.get("labelSelector")
    labels = labels_of(pod)
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or ()
        if key in labels
    ]
    if selector is None or not added:
        return selector
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]}


class Neighbours:
    """The places of a snapshot that required terms make good or bad for one pod."""

    def __init__(self, pod: Mapping[str, Any], snapshot: Snapshot) -> None:
        self._wanted = required_terms(pod, "podAffinity")
        self._avoided = required_terms(pod, "podAntiAffinity")
        self._friends: set[Place] = set()
        self._foes: set[Place] = set()
        self._closed: set[Place] = set()
        for state in snapshot.nodes.values():
            self._look_at(state, pod, snapshot)
        # The first of a group that wants to be together has nobody to join yet, and may begin anywhere.
        self._may_begin = not self._friends and all(term.matches(pod, snapshot) for term in self._wanted)

    def _look_at(self, state: NodeState, pod: Mapping[str, Any], snapshot: Snapshot) -> None:
        labels = labels_of(state.node)
        for other in state.related:
            for term in required_terms(other, "podAntiAffinity"):
                if term.key in labels and term.matches(pod, snapshot):
                    self._closed.add((term.key, labels[term.key]))
        for other in state.pods if self._wanted or self._avoided else ():
            if self._wanted and all(term.matches(other, snapshot) for term in self._wanted):
                self._friends |= {(term.key, labels[term.key]) for term in self._wanted if term.key in labels}
            for term in self._avoided:
                if term.key in labels and term.matches(other, snapshot):
                    self._foes.add((term.key, labels[term.key]))

    def objection(self, state: NodeState) -> Objection | None:
        labels = labels_of(state.node)
        if any(term.key not in labels for term in self._wanted):
            return _NO_FRIEND
        if not self._may_begin and any((term.key, labels[term.key]) not in self._friends for term in self._wanted):
            return _NO_FRIEND
        if any((term.key, labels.get(term.key)) in self._foes for term in self._avoided):
            return _FOE_THERE
        if self._closed and not self._closed.isdisjoint(labels.items()):
            return _UNWELCOME
        return None


def attractions(pod: Mapping[str, Any], snapshot: Snapshot, candidates: Sequence[NodeState]) -> list[int]:
    """Return how much preferred terms, the pod's and the others', draw the pod to each candidate."""
    towards, away = preferred_terms(pod, "podAffinity"), preferred_terms(pod, "podAntiAffinity")
    worth: Counter[Place] = Counter()

    def count(terms: Sequence[PodTerm], about: Mapping[str, Any], labels: Mapping[str, str], sign: int) -> None:
        for term in terms:
            if term.key in labels and term.matches(about, snapshot):
                worth[term.key, labels[term.key]] += sign * term.weight

    for state in snapshot.nodes.values():
        labels = labels_of(state.node)
        for other in state.pods if towards or away else ():
            count(towards, other, labels, 1)
            count(away, other, labels, -1)
        for other in state.related:
            count(required_terms(other, "podAffinity"), pod, labels, 1)
            count(preferred_terms(other, "podAffinity"), pod, labels, 1)
            count(preferred_terms(other, "podAntiAffinity"), pod, labels, -1)
    return [sum(worth[place] for place in labels_of(state.node).items()) if worth else 0 for state in candidates]
