"""The objects built for a cluster: those of its head, those of its workers, and one of them by its kind."""

from typing import Any

from grid.clusters.manifests import first, workers
from grid.executions.spec import ExecutionSpec
from grid.kube.objects import RawObject
from tests.clusters.cluster_specs import LABELS, OWNER


def metadata(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "grid", "labels": LABELS, "ownerReferences": [OWNER]}


def object_of(manifests: list[Any], resource: Any, name: str = "") -> RawObject:
    (body,) = [m.body for m in manifests if m.resource == resource and name in ("", m.name)]
    return dict(body)


def firsts(of: ExecutionSpec, **more: Any) -> list[Any]:
    """What is made first, up to the head."""
    return first(of, namespace="grid", anchor_uid="anchor-uid", **more)


def seconds(of: ExecutionSpec) -> list[Any]:
    """What is made once the head has an address."""
    return workers(of, namespace="grid", anchor_uid="anchor-uid", head_address="10.0.0.9")
