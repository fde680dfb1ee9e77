"""Tables for people: the rows that `kubectl get` prints are made by the server.

Each kind has its columns (name, priority: 1 shows only with `-o wide`) and a function from an object to its cells.
A kind without a table of its own shows name and age.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from grid.sandbox.apiserver import tables_storage
from grid.sandbox.apiserver.ages import age, since
from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.selectors import selector_text
from grid.sandbox.apiserver.tables_endpoints import container_texts, endpoint_slice_cells
from grid.sandbox.apiserver.tables_pod import POD_COLUMNS, pod_cells
from grid.sandbox.storage import CLASSES_RESOURCE

Cells = Callable[[Object, datetime], list[Any]]


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[tuple[str, int], ...]
    cells: Cells


def _plain(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], age(obj, now)]


def _count(obj: Object, path: str) -> int:
    section, _, key = path.partition(".")
    return int((obj.get(section) or {}).get(key) or 0)


def _deployment(obj: Object, now: datetime) -> list[Any]:
    spec = obj["spec"]
    names, images = container_texts(spec.get("template"))
    ready = f"{_count(obj, 'status.readyReplicas')}/{spec.get('replicas', 0)}"
    updated, available = _count(obj, "status.updatedReplicas"), _count(obj, "status.availableReplicas")
    return [
        obj["metadata"]["name"],
        ready,
        updated,
        available,
        age(obj, now),
        names,
        images,
        selector_text(spec.get("selector")),
    ]


def _replica_set(obj: Object, now: datetime) -> list[Any]:
    spec = obj["spec"]
    counts = [spec.get("replicas", 0), _count(obj, "status.replicas"), _count(obj, "status.readyReplicas")]
    names, images = container_texts(spec.get("template"))
    return [obj["metadata"]["name"], *counts, age(obj, now), names, images, selector_text(spec.get("selector"))]


def _node(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    words = {"True": "Ready", "False": "NotReady"}.get(
        conditions.get("Ready", ""), "NotReady" if "Ready" in conditions else "Unknown"
    )
    if (obj.get("spec") or {}).get("unschedulable"):
        words += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix)
    addresses = {each["type"]: each["address"] for each in reversed(status.get("addresses") or ())}
    info = status.get("nodeInfo") or {}
    return [
        obj["metadata"]["name"],
        words,
        ",".join(roles) or "<none>",
        age(obj, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _service(obj: Object, now: datetime) -> list[Any]:
    spec = obj["spec"]
    ports = ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in spec.get("ports") or ())
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    external = spec.get("externalName") or "<none>"
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        spec.get("clusterIP") or "<none>",
        external,
        ports or "<none>",
        age(obj, now),
        selector or "<none>",
    ]


def _namespace(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], obj["status"].get("phase", ""), age(obj, now)]


def _config_map(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), age(obj, now)]


def _secret(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or {}), age(obj, now)]


def _event(obj: Object, now: datetime) -> list[Any]:
    series = obj.get("series") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or first
    about = obj.get("involvedObject") or {}
    source = obj.get("source") or {}
    origin = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        f"{origin}, {instance}" if instance else origin,
        str(obj.get("message", "")).strip(),
        since(first, now),
        series.get("count") or obj.get("count") or 1,
        obj["metadata"]["name"],
    ]


def _autoscaler(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    return [
        obj["metadata"]["name"],
        f"{target.get('kind')}/{target.get('name')}",
        _targets(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas") or 0,
        age(obj, now),
    ]


def _target(metric: Object, current: Object) -> str:
    source = "containerResource" if metric["type"] == "ContainerResource" else metric["type"].lower()
    wanted, measured = metric.get(source) or {}, (current.get(source) or {}).get("current") or {}
    target = wanted.get("target") or {}
    if target.get("averageUtilization") is not None:
        seen = measured.get("averageUtilization")
        return (
            f"{wanted.get('name', '')}: {'<unknown>' if seen is None else f'{seen}%'}/{target['averageUtilization']}%"
        )
    if metric["type"] == "External":
        if target.get("averageValue") is not None:
            return f"{measured.get('averageValue', '<unknown>')}/{target['averageValue']} (avg)"
        return f"{measured.get('value', '<unknown>')}/{target.get('value')}"
    goal = target.get("averageValue") or target.get("value")
    return f"{wanted.get('name', '')}: {measured.get('averageValue') or measured.get('value') or '<unknown>'}/{goal}"


def _targets(metrics: Sequence[Object], current: Sequence[Object]) -> str:
    if not metrics:
        return "<none>"
    parts = [
        _target(metric, current[number] if number < len(current) else {}) for number, metric in enumerate(metrics[:2])
    ]
    more = f" + {len(metrics) - 2} more..." if len(metrics) > 2 else ""
    return ", ".join(parts) + more


def _budget(obj: Object, now: datetime) -> list[Any]:
    spec = obj["spec"]
    least, most = (str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable"))
    return [obj["metadata"]["name"], least, most, _count(obj, "status.disruptionsAllowed"), age(obj, now)]


def _api_service(obj: Object, now: datetime) -> list[Any]:
    service = obj["spec"].get("service")
    conditions = (obj.get("status") or {}).get("conditions") or ()
    available = next((item for item in conditions if item["type"] == "Available"), {"status": "Unknown"})
    shown = f"{available['status']} ({available['reason']})" if available["status"] == "False" else available["status"]
    where = f"{service['namespace']}/{service['name']}" if service else "Local"
    return [obj["metadata"]["name"], where, shown, age(obj, now)]


def _network_policy(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], selector_text(obj["spec"].get("podSelector")) or "<none>", age(obj, now)]


def _lease(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity", ""), age(obj, now)]


def _priority_class(obj: Object, now: datetime) -> list[Any]:
    default = obj.get("globalDefault", False)
    return [obj["metadata"]["name"], obj.get("value", 0), default, age(obj, now), obj.get("preemptionPolicy", "")]


def _limit_range(obj: Object, now: datetime) -> list[Any]:
    del now
    return [obj["metadata"]["name"], obj["metadata"]["creationTimestamp"]]


def _quota(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    parts = [f"{name}: {used.get(name, '0')}/{most}" for name, most in sorted(hard.items())]
    requests = ", ".join(part for part in parts if not part.startswith("limits."))
    limits = ", ".join(part for part in parts if part.startswith("limits."))
    return [obj["metadata"]["name"], requests, limits, age(obj, now)]


def _columns(*names: str) -> tuple[tuple[str, int], ...]:
    """Return the columns with their priority; a name with "+" before it shows only with `-o wide`."""
    return tuple((name.removeprefix("+"), int(name.startswith("+"))) for name in names)


_PLAIN = Table(_columns("Name", "Age"), _plain)
_TABLES: Mapping[str, Table] = {
    "pods": Table(POD_COLUMNS, pod_cells),
    "deployments.apps": Table(
        _columns("Name", "Ready", "Up-to-date", "Available", "Age", "+Containers", "+Images", "+Selector"), _deployment
    ),
    "replicasets.apps": Table(
        _columns("Name", "Desired", "Current", "Ready", "Age", "+Containers", "+Images", "+Selector"), _replica_set
    ),
    "nodes": Table(
        _columns(
            *("Name", "Status", "Roles", "Age", "Version"),
            *("+Internal-IP", "+External-IP", "+OS-Image", "+Kernel-Version", "+Container-Runtime"),
        ),
        _node,
    ),
    "services": Table(_columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector"), _service),
    "namespaces": Table(_columns("Name", "Status", "Age"), _namespace),
    "configmaps": Table(_columns("Name", "Data", "Age"), _config_map),
    "secrets": Table(_columns("Name", "Type", "Data", "Age"), _secret),
    "persistentvolumeclaims": Table(_columns(*tables_storage.CLAIM_COLUMNS), tables_storage.claim_cells),
    "persistentvolumes": Table(_columns(*tables_storage.VOLUME_COLUMNS), tables_storage.volume_cells),
    CLASSES_RESOURCE: Table(_columns(*tables_storage.CLASS_COLUMNS), tables_storage.class_cells),
    "events": Table(
        _columns(
            *(
                "Last Seen",
                "Type",
                "Reason",
                "Object",
                "+Subobject",
                "+Source",
                "Message",
                "+First Seen",
                "+Count",
                "+Name",
            )
        ),
        _event,
    ),
    "endpointslices.discovery.k8s.io": Table(
        _columns("Name", "AddressType", "Ports", "Endpoints", "Age"), endpoint_slice_cells
    ),
    "horizontalpodautoscalers.autoscaling": Table(
        _columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), _autoscaler
    ),
    "poddisruptionbudgets.policy": Table(
        _columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"), _budget
    ),
    "apiservices.apiregistration.k8s.io": Table(_columns("Name", "Service", "Available", "Age"), _api_service),
    "networkpolicies.networking.k8s.io": Table(_columns("Name", "Pod-Selector", "Age"), _network_policy),
    "leases.coordination.k8s.io": Table(_columns("Name", "Holder", "Age"), _lease),
    "priorityclasses.scheduling.k8s.io": Table(
        _columns("Name", "Value", "Global-Default", "Age", "PreemptionPolicy"), _priority_class
    ),
    "limitranges": Table(_columns("Name", "Created At"), _limit_range),
    "resourcequotas": Table(_columns("Name", "Request", "Limit", "Age"), _quota),
}


def table(kind: ServedKind, objects: Sequence[Object], *, include: str, now: datetime | None = None) -> Object:
    """Return a `Table` of these objects; `include` is how much of each object is added: Metadata, Object or None."""
    shown = _TABLES.get(kind.resource, _PLAIN)
    moment = now or datetime.now(UTC)
    rows = []
    for obj in objects:
        row: Object = {"cells": shown.cells(obj, moment)}
        if include == "Object":
            row["object"] = obj
        elif include != "None":
            row["object"] = partial(obj)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [
            {
                "name": name,
                "type": "string",
                "format": "name" if name == "Name" else "",
                "description": name,
                "priority": priority,
            }
            for name, priority in shown.columns
        ],
        "rows": rows,
    }


def partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
