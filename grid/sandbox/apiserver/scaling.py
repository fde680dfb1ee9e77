"""The scale subresource: the number of replicas of a Deployment or ReplicaSet, without the rest of the object."""

from collections.abc import Callable

from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.registry import Registry
from grid.sandbox.apiserver.selectors import selector_text
from grid.sandbox.apiserver.status import invalid, wrong
from grid.sandbox.apiserver.store import Record

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(record: Record) -> Object:
    obj = record.obj
    replicas = obj["spec"].get("replicas", 0)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in _KEPT if key in obj["metadata"]},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {
            "replicas": (obj.get("status") or {}).get("replicas", 0),
            "selector": selector_text(obj["spec"].get("selector")),
        },
    }


def change_scale(
    registry: Registry, kind: ServedKind, key: str, mutate: Callable[[Object], Object], *, dry_run: bool
) -> Object:
    """Apply a change to the `Scale` and store its replicas in the object."""
    record = registry.read(kind, key)
    scale = mutate(scale_of(record))
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    name = record.obj["metadata"]["name"]
    if replicas < 0:
        raise invalid(
            "Scale", "autoscaling", name, [wrong("spec.replicas", replicas, "must be greater than or equal to 0")]
        )
    version = (scale.get("metadata") or {}).get("resourceVersion") or ""

    def resize(obj: Object) -> Object:
        obj["spec"]["replicas"] = replicas
        obj["metadata"]["resourceVersion"] = version or obj["metadata"]["resourceVersion"]
        return obj

    return scale_of(registry.update(kind, key, resize, dry_run=dry_run))
