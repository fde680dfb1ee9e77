"""Kubernetes objects for tests, with the few things a test wants to say as arguments and realistic defaults for the rest."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from grid.core.labels import NODE_POOL
from grid.diagnosis.room import NodeRoom
from grid.kube.objects import Pod, RawObject

T = TypeVar("T")
NAMESPACE = "compute-grid"
MOMENT = datetime(2026, 3, 4, 9, 0, 0, tzinfo=UTC)


def stamp(moment: datetime) -> str:
    """A time as Kubernetes writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def decode(obj: object, kind: type[T]) -> T:
    """The slim typed view of a whole object, through bytes as in real life."""
    return msgspec.json.decode(msgspec.json.encode(obj), type=kind)


def metadata(
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: RawObject | None = None,
    created: datetime = MOMENT,
    **more: Any,
) -> RawObject:
    """`owner` is a stored object (it needs kind, name and uid); `more` goes in as it is, in Kubernetes' spelling."""
    meta: RawObject = {"name": name, "uid": f"uid-of-{name}", "creationTimestamp": stamp(created), **more}
    if namespace:
        meta["namespace"] = namespace
    if labels:
        meta["labels"] = dict(labels)
    if annotations:
        meta["annotations"] = dict(annotations)
    if owner:
        meta["ownerReferences"] = [owner_reference(owner)]
    return meta


def owner_reference(owner: RawObject) -> RawObject:
    return {
        "apiVersion": owner.get("apiVersion", "v1"),
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


def condition(kind: str, status: str, reason: str = "", message: str = "", *, at: datetime = MOMENT) -> RawObject:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp(at)}


def container_status(
    name: str = "run", *, ready: bool = False, restarts: int = 0, state: RawObject | None = None, **more: Any
) -> RawObject:
    """`state` is for example {"waiting": {"reason": "ImagePullBackOff"}}; extra fields in Kubernetes' spelling."""
    return {
        "name": name,
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "image": "python:3.11",
        "imageID": "",
        "state": state or ({"running": {"startedAt": stamp(MOMENT)}} if ready else {"waiting": {"reason": "Unknown"}}),
        "lastState": {},
        **more,
    }


def pod(
    name: str,
    *,
    namespace: str = NAMESPACE,
    node: str = "",
    phase: str = "Pending",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    ready: bool = False,
    conditions: list[RawObject] | None = None,
    containers: list[RawObject] | None = None,
    statuses: list[RawObject] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **meta: Any,
) -> RawObject:
    """One container "run" unless `containers` says otherwise; `spec`, `status` and `meta` add or replace fields."""
    asked = dict(requests or {"cpu": "500m", "memory": "512Mi"})
    if conditions is None:
        conditions = [condition("PodScheduled", "True")] if node else []
        # A pod that is not ready has been so since it was made.
        at = MOMENT if ready else MOMENT - timedelta(days=30)
        conditions += [condition("Ready", "True" if ready else "False", at=at)] if node else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, namespace=namespace, labels=labels, **meta),
        "spec": {
            "containers": containers
            or [{"name": "run", "image": "python:3.11", "resources": {"requests": asked, "limits": asked}}],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            **({"nodeName": node} if node else {}),
            **(spec or {}),
        },
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": statuses
            if statuses is not None
            else ([container_status(ready=True)] if ready else []),
            **(status or {}),
        },
    }


def node(
    name: str,
    *,
    pool: str = "default",
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    ready: bool = True,
    labels: Mapping[str, str] | None = None,
    taints: list[RawObject] | None = None,
    unschedulable: bool = False,
    instance_type: str = "standard-4",
    extended: Mapping[str, str] | None = None,
    conditions: list[RawObject] | None = None,
    status: Mapping[str, Any] | None = None,
    **meta: Any,
) -> RawObject:
    """A ready node of a pool ("" for a node of no pool); `extended` adds resources such as {"nvidia.com/gpu": "1"}."""
    own = {"kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": instance_type}
    if pool:
        own[NODE_POOL] = pool
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "100Gi", **(extended or {})}
    spec: RawObject = {"providerID": f"sandbox://{name}"}
    if taints:
        spec["taints"] = taints
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, labels={**own, **(labels or {})}, **meta),
        "spec": spec,
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": conditions
            or [condition("Ready", "True" if ready else "False", "KubeletReady" if ready else "KubeletNotReady")],
            "addresses": [{"type": "InternalIP", "address": "127.32.0.1"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {
                "kubeletVersion": "v1.36.2",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "containerRuntimeVersion": "containerd://2.1.4",
            },
            **(status or {}),
        },
    }


def event(
    name: str,
    *,
    about: RawObject | None = None,
    reason: str = "Scheduled",
    message: str = "",
    kind: str = "Normal",
    count: int = 1,
    component: str = "default-scheduler",
    at: datetime = MOMENT,
    namespace: str = "",
    **more: Any,
) -> RawObject:
    """`about` is the object concerned; the event lies in its namespace ("default" for what has none)."""
    concerned: RawObject = {}
    if about is not None:
        meta = about["metadata"]
        concerned = {
            "kind": about["kind"],
            "apiVersion": about.get("apiVersion", "v1"),
            "name": meta["name"],
            "namespace": meta.get("namespace", ""),
            "uid": meta.get("uid", ""),
        }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata(name, namespace=namespace or concerned.get("namespace") or "default", created=at),
        "involvedObject": concerned,
        "reason": reason,
        "message": message,
        "type": kind,
        "count": count,
        "firstTimestamp": stamp(at),
        "lastTimestamp": stamp(at),
        "source": {"component": component},
        "reportingComponent": component,
        **more,
    }


def config_map(
    name: str, data: Mapping[str, str] | None = None, *, namespace: str = NAMESPACE, **meta: Any
) -> RawObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(name, namespace=namespace, **meta),
        "data": dict(data or {}),
    }


def room_of(pods: Iterable[Pod]) -> NodeRoom:
    room = NodeRoom()
    for pod in pods:
        room.pod_changed(None, pod)
    return room
