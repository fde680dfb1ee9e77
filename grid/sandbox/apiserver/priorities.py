"""Priorities: a pod gets its number, and whether others may be ended for it, from its PriorityClass when it is created."""

from grid.sandbox.apiserver.kinds import PODS, Object, ServedKind
from grid.sandbox.apiserver.status import forbidden
from grid.sandbox.apiserver.store import ObjectStore

CLASSES = "priorityclasses.scheduling.k8s.io"
SYSTEM_CLASSES = {
    "system-cluster-critical": (
        2000000000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (
        2000001000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}
_PREEMPTS = "PreemptLowerPriority"
_RULE = "must not be provided in pod spec; priority admission controller computed"


def give_priority(store: ObjectStore, pod: Object) -> None:
    """Fill in a new pod's priority, or raise `Failure` when its class is missing or it asks for another priority than its class has."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    priority_class: Object | None
    if spec.get("priorityClassName"):
        record = store.get(CLASSES, spec["priorityClassName"])
        if record is None:
            raise forbidden(PODS, name, f"no PriorityClass with name {spec['priorityClassName']} was found")
        priority_class = record.obj
    else:
        priority_class = _default_class(store)
        if priority_class is not None:
            spec["priorityClassName"] = priority_class["metadata"]["name"]
    priority = int(priority_class.get("value", 0)) if priority_class else 0
    policy = str(priority_class.get("preemptionPolicy", _PREEMPTS)) if priority_class else _PREEMPTS
    if spec.get("priority", priority) != priority:
        why = f"the integer value of priority ({spec['priority']}) {_RULE} {priority} from the given PriorityClass name"
        raise forbidden(PODS, name, why)
    if spec.get("preemptionPolicy", policy) != policy:
        why = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) {_RULE} {policy} from the given PriorityClass name"
        raise forbidden(PODS, name, why)
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def keep_priority(new: Object, old: Object) -> None:
    """Fill in what an update of a pod leaves out."""
    for field in ("priority", "preemptionPolicy"):
        if field in old["spec"]:
            new["spec"].setdefault(field, old["spec"][field])


def _default_class(store: ObjectStore) -> Object | None:
    """Return the class of pods that name none: of several the one with the smallest value, as everywhere."""
    marked = [record.obj for record in store.records(CLASSES) if record.obj.get("globalDefault")]
    return min(marked, key=lambda obj: int(obj.get("value", 0)), default=None)


def check_default(store: ObjectStore, kind: ServedKind, obj: Object) -> None:
    """Raise `Failure` for a second class that is to be the default."""
    other = _default_class(store)
    if obj.get("globalDefault") and other is not None and other["metadata"]["name"] != obj["metadata"]["name"]:
        why = f"PriorityClass {other['metadata']['name']} is already marked as default. Only one default can exist"
        raise forbidden(kind, obj["metadata"]["name"], why)
