"""One pod's question to a snapshot: what each node objects to. What depends on all nodes is counted once per question."""

from collections.abc import Mapping
from typing import Any

from grid.sandbox.controllers.podresources import Amounts
from grid.sandbox.controllers.scheduling.claims import VolumePlaces
from grid.sandbox.controllers.scheduling.filters import Objection, objection
from grid.sandbox.controllers.scheduling.snapshot import NodeState, Snapshot
from grid.sandbox.controllers.selectors import matches_requirement, required_node_terms

_OUTSIDE_FIELDS = Objection(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), helpless=True)


class Question:
    """Asks every filter in the default scheduler's order; the first that objects speaks for the node."""

    def __init__(self, pod: Mapping[str, Any], requests: Amounts, snapshot: Snapshot) -> None:
        self._pod = pod
        self._requests = requests
        self._snapshot = snapshot
        self._named = _named_nodes(pod)
        self._volumes = VolumePlaces(pod, snapshot)

    def objection(self, state: NodeState) -> Objection | None:
        """Return why the node does not take the pod, or None. Room that is kept for more important pods counts as taken."""
        kept = [pod for pod in self._snapshot.nominated.get(state.name, ()) if _goes_first(pod, self._pod)]
        if kept:
            crowded = self._snapshot.with_pods(state.name, [*state.pods, *kept])
            objection = Question(self._pod, self._requests, crowded)._ask(crowded.nodes[state.name])
            if objection is not None:
                return objection
        return self._ask(state)

    def _ask(self, state: NodeState) -> Objection | None:
        if self._named is not None and state.name not in self._named:
            return _OUTSIDE_FIELDS
        return objection(self._pod, self._requests, state) or self._volumes.objection(state)


def _goes_first(other: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    return other["metadata"].get("uid") != pod["metadata"].get("uid") and priority_of(other) >= priority_of(pod)


def priority_of(pod: Mapping[str, Any]) -> int:
    return int(pod["spec"].get("priority") or 0)


def _named_nodes(pod: Mapping[str, Any]) -> set[str] | None:
    """Return the nodes that the required terms name by their fields, or None when some term names none."""
    terms = required_node_terms(pod)
    if not terms:
        return None
    named: set[str] = set()
    for term in terms:
        fields = term.get("matchFields") or ()
        if not fields:
            return None
        values = {value for field in fields if field.get("operator") == "In" for value in field.get("values") or ()}
        named |= {name for name in values if all(matches_requirement(f, {"metadata.name": name}) for f in fields)}
    return named
