"""What a pod's volume claims demand of its node: one problem that keeps it from all nodes, or an objection of single nodes."""

from collections.abc import Iterable, Mapping
from typing import Any

from grid.sandbox.client import annotations_of, is_terminating, labels_of, name_of, namespace_of
from grid.sandbox.controllers.ephemeral import claim_name, ownership_problem
from grid.sandbox.controllers.scheduling.filters import Objection
from grid.sandbox.controllers.scheduling.snapshot import NodeState, Snapshot
from grid.sandbox.controllers.selectors import matches_node_term
from grid.sandbox.controllers.volumebinding import smallest_fit, waits_for_pod
from grid.sandbox.storage import NO_PROVISIONER, SELECTED_NODE, class_of, requested_storage

_ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
_NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
_OTHER_ZONE = Objection(("node(s) had no available volume zone",), helpless=True)
_ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


def claim_problem(pod: Mapping[str, Any], snapshot: Snapshot) -> str:
    """Return why the pod's volume claims keep it from every node, or "" when they are in order."""
    unbound = False
    for volume, name in _claimed(pod):
        claim = snapshot.claims.get(f"{namespace_of(pod)}/{name}")
        if claim is None and "ephemeral" in volume:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if "ephemeral" in volume and (problem := ownership_problem(pod, claim)):
            return problem
        if claim.get("status", {}).get("phase") == "Lost":
            volume_name = claim.get("spec", {}).get("volumeName", "")
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"'
        if is_terminating(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        unbound = unbound or not (claim.get("spec", {}).get("volumeName") or waits_for_pod(claim, snapshot.classes))
    return "pod has unbound immediate PersistentVolumeClaims" if unbound else ""


def _claimed(pod: Mapping[str, Any]) -> Iterable[tuple[Mapping[str, Any], str]]:
    """Yield each volume that is a claim, with the claim's name."""
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume, volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            yield volume, claim_name(pod, volume)


class VolumePlaces:
    """The volumes that a pod's claims have, or may get, and the nodes that reach them."""

    def __init__(self, pod: Mapping[str, Any], snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        known = [snapshot.claims.get(f"{namespace_of(pod)}/{name}") for _, name in _claimed(pod)]
        existing = [claim for claim in known if claim is not None]
        named = [(claim, claim.get("spec", {}).get("volumeName")) for claim in existing]
        # The object of a volume from before this cluster had any is about to come, and every node reaches it.
        self._bound = [snapshot.volumes[name] for _, name in named if name in snapshot.volumes]
        self._waiting = [claim for claim, name in named if not name]

    def objection(self, state: NodeState) -> Objection | None:
        reasons = []
        if any(not _reaches(state, volume) for volume in self._bound):
            reasons.append(_ELSEWHERE)
        if not self._could_bind(state):
            reasons.append(_NONE_TO_BIND)
        if reasons:
            return Objection(tuple(reasons), helpless=True)
        if any(_in_another_zone(state, volume) for volume in self._bound):
            return _OTHER_ZONE
        return None

    def _could_bind(self, state: NodeState) -> bool:
        """Return True when every waiting claim finds a volume of its own on this node, or one can be made there."""
        return self.bindings(state) is not None

    def bindings(self, state: NodeState) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]] | None:
        """Return each waiting claim with the volume that it would take on this node (None: one is made), or None if one finds none."""
        taken: set[str] = set()
        chosen: list[tuple[Mapping[str, Any], Mapping[str, Any] | None]] = []
        for claim in sorted(self._waiting, key=lambda claim: requested_storage(claim["spec"])):
            storage_class = self._snapshot.classes.get(class_of(claim), {})
            volume = smallest_fit(
                claim, self._snapshot.volumes.values(), taken=taken, reaches=lambda volume: _reaches(state, volume)
            )
            if volume is not None:
                taken.add(name_of(volume))
            elif not _could_be_made(claim, storage_class, state):
                return None
            chosen.append((claim, volume))
        return chosen


def _reaches(state: NodeState, volume: Mapping[str, Any]) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    return any(matches_node_term(term, state.node) for term in required.get("nodeSelectorTerms") or ())


def _in_another_zone(state: NodeState, volume: Mapping[str, Any]) -> bool:
    """Return True when the volume's zone or region is not the node's. A node without such labels takes every volume."""
    of_node, of_volume = labels_of(state.node), labels_of(volume)
    if not any(label in of_node for label in _ZONE_LABELS):
        return False
    return any(label in of_volume and of_node.get(label) not in of_volume[label].split("__") for label in _ZONE_LABELS)


def _could_be_made(claim: Mapping[str, Any], storage_class: Mapping[str, Any], state: NodeState) -> bool:
    """Return True when the class's provisioner may make a volume for this node, and no other node has been chosen before."""
    if storage_class.get("provisioner") == NO_PROVISIONER:
        return False
    if annotations_of(claim).get(SELECTED_NODE, state.name) != state.name:
        return False
    terms = storage_class.get("allowedTopologies") or ()
    labels = labels_of(state.node)
    return not terms or any(
        all(labels.get(item["key"]) in item["values"] for item in term.get("matchLabelExpressions") or ())
        for term in terms
    )
