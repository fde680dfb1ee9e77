"""`kubectl describe pod`, from the pod and its events."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from grid.diagnosis.describe.containers import write_containers
from grid.diagnosis.describe.writing import (
    Columns,
    RawObject,
    age,
    full_time,
    small_bool,
    write_annotations,
    write_events,
    write_labels,
)

_Line = tuple[str, Any]


def describe_pod(pod: RawObject, *, events: Sequence[RawObject], now: datetime) -> str:
    out = Columns()
    spec, status = pod["spec"], pod.get("status", {})
    _write_head(out, pod, now)
    _write_addresses(out, pod)
    if spec.get("initContainers"):
        write_containers(out, "Init Containers", spec["initContainers"], status.get("initContainerStatuses"), pod)
    write_containers(out, "Containers", spec["containers"], status.get("containerStatuses"), pod)
    if spec.get("ephemeralContainers"):
        statuses = status.get("ephemeralContainerStatuses")
        write_containers(out, "Ephemeral Containers", spec["ephemeralContainers"], statuses, pod)
    _write_conditions(out, spec, status)
    _write_volumes(out, spec.get("volumes") or ())
    out.write_set(0, status, ("QoS Class", "qosClass"))
    write_labels(out, "Node-Selectors", spec.get("nodeSelector"))
    tolerations = sorted(spec.get("tolerations") or (), key=lambda toleration: str(toleration.get("key", "")))
    out.write_list("Tolerations", [_toleration(toleration) for toleration in tolerations])
    if spreads := spec.get("topologySpreadConstraints"):
        spreads = sorted(spreads, key=lambda constraint: str(constraint["topologyKey"]))
        out.write_list("Topology Spread Constraints", [_spread(constraint) for constraint in spreads])
    write_events(out, events, now)
    return out.text()


def _write_head(out: Columns, pod: RawObject, now: datetime) -> None:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    out.write(0, f"Name:\t{metadata['name']}\nNamespace:\t{metadata['namespace']}\n")
    if spec.get("priority") is not None:
        out.write(0, f"Priority:\t{spec['priority']}\n")
    out.write_set(0, spec, ("Priority Class Name", "priorityClassName"), ("Runtime Class Name", "runtimeClassName"))
    out.write(0, f"Service Account:\t{spec.get('serviceAccountName', '')}\n")
    node = f"{spec['nodeName']}/{status.get('hostIP', '')}" if spec.get("nodeName") else "<none>"
    out.write(0, f"Node:\t{node}\n")
    if status.get("startTime"):
        out.write(0, f"Start Time:\t{full_time(status['startTime'])}\n")
    write_labels(out, "Labels", metadata.get("labels"))
    write_annotations(out, metadata.get("annotations"))
    if metadata.get("deletionTimestamp") and status.get("phase") not in ("Failed", "Succeeded"):
        out.write(0, f"Status:\tTerminating (lasts {age(metadata['deletionTimestamp'], now)})\n")
        out.write(0, f"Termination Grace Period:\t{metadata.get('deletionGracePeriodSeconds', 0)}s\n")
    else:
        out.write(0, f"Status:\t{status.get('phase', '')}\n")
    out.write_set(0, status, ("Reason", "reason"), ("Message", "message"))
    if seccomp := (spec.get("securityContext") or {}).get("seccompProfile"):
        out.write(0, f"SeccompProfile:\t{seccomp['type']}\n")
        if seccomp["type"] == "Localhost":
            out.write(0, f"LocalhostProfile:\t{seccomp.get('localhostProfile', '')}\n")


def _write_addresses(out: Columns, pod: RawObject) -> None:
    status = pod.get("status", {})
    out.write(0, f"IP:\t{status.get('podIP', '')}\n")
    out.write(0, "IPs:\n" if status.get("podIPs") else "IPs:\t<none>\n")
    for address in status.get("podIPs") or ():
        out.write(1, f"IP:\t{address.get('ip', '')}\n")
    controller = next((o for o in pod["metadata"].get("ownerReferences") or () if o.get("controller")), None)
    if controller:
        out.write(0, f"Controlled By:\t{controller['kind']}/{controller['name']}\n")
    out.write_set(0, status, ("NominatedNodeName", "nominatedNodeName"))


def _write_conditions(out: Columns, spec: RawObject, status: RawObject) -> None:
    conditions = status.get("conditions") or ()
    if gates := spec.get("readinessGates"):
        out.write(0, "Readiness Gates:\n  Type\tStatus\n")
        states = {condition["type"]: condition["status"] for condition in conditions}
        for gate in gates:
            out.write(1, f"{gate['conditionType']} \t{states.get(gate['conditionType'], '<none>')} \n")
    if conditions:
        out.write(0, "Conditions:\n  Type\tStatus\n")
        for condition in conditions:
            out.write(1, f"{condition['type']} \t{condition['status']} \n")


def _toleration(toleration: RawObject) -> str:
    text = str(toleration.get("key", ""))
    text += f"={toleration['value']}" if toleration.get("value") else ""
    text += f":{toleration['effect']}" if toleration.get("effect") else ""
    if toleration.get("operator") == "Exists" and not toleration.get("value"):
        text += " op=Exists" if text else "op=Exists"
    if toleration.get("tolerationSeconds") is not None:
        text += f" for {toleration['tolerationSeconds']}s"
    return text


def _spread(constraint: RawObject) -> str:
    skew = f"when max skew {constraint['maxSkew']} is exceeded"
    text = f"{constraint['topologyKey']}:{constraint['whenUnsatisfiable']} {skew}"
    if constraint.get("labelSelector") is not None:
        pairs = constraint["labelSelector"].get("matchLabels") or {}
        text += " for selector " + ",".join(f"{key}={pairs[key]}" for key in sorted(pairs))
    return text


def _write_volumes(out: Columns, volumes: Sequence[RawObject]) -> None:
    out.write(0, "Volumes:\n" if volumes else "Volumes:\t<none>\n")
    for volume in volumes:
        out.write(1, f"{volume['name']}:\n")
        kind = next((name for name in (*_FIELDS, *_OTHERS) if name in volume), "")
        if not kind:
            out.write(2, "<unknown>\n")
            continue
        source = volume[kind] or {}
        if kind in _OTHERS:
            lines = _OTHERS[kind](source)
        else:
            what, fields = _FIELDS[kind]
            lines = [("Type", what), *((title, words(source.get(field))) for title, field, words in fields)]
        for title, value in lines:
            out.write(2, f"{title}:\t{value}\n")
        if kind == "downwardAPI":
            _write_items(out, volume[kind])
        if kind == "csi":
            for index, (key, value) in enumerate(sorted((volume[kind].get("volumeAttributes") or {}).items())):
                out.write(0 if index else 2, "\t" if index else "VolumeAttributes:\t")
                out.write(2, f"{key}={value}\n")


def _projected(source: RawObject) -> list[_Line]:
    lines: list[_Line] = [("Type", "Projected (a volume that contains injected data from multiple sources)")]
    for part in source.get("sources") or ():
        for kind, title in (("secret", "SecretName"), ("configMap", "ConfigMapName")):
            if kind in part:
                lines += (title, part[kind].get("name", "")), ("Optional", small_bool(part[kind].get("optional")))
        if "downwardAPI" in part:
            lines.append(("DownwardAPI", "true"))
        if "serviceAccountToken" in part:
            lines.append(("TokenExpirationSeconds", part["serviceAccountToken"].get("expirationSeconds", 0)))
    return lines


def _ephemeral(source: RawObject) -> list[_Line]:
    template = source.get("volumeClaimTemplate") or {}
    spec, metadata = template.get("spec") or {}, template.get("metadata") or {}
    return [
        ("Type", "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)"),
        ("StorageClass", spec.get("storageClassName", "")),
        ("Volume", spec.get("volumeName", "")),
        *_pairs("Labels", metadata.get("labels") or {}, "="),
        *_pairs("Annotations", metadata.get("annotations") or {}, ": "),
        ("Capacity", ""),
        ("Access Modes", ""),
        *([("VolumeMode", spec["volumeMode"])] if spec.get("volumeMode") else ()),
    ]


def _pairs(title: str, pairs: Mapping[str, str], sign: str) -> list[_Line]:
    """Return a line for each pair; kubectl indents them by four blanks of their own."""
    texts = [f"    {key}{sign}{pairs[key]}" for key in sorted(pairs)] or ["    <none>"]
    return [(title, text) for text in texts]


def _text(value: str | None) -> str:
    return value or ""


# Of each kind: what it is, and the fields that are shown, as title, name and how the value is written.
_FIELDS: Mapping[str, tuple[str, Sequence[tuple[str, str, Callable[[Any], str]]]]] = {
    "hostPath": ("HostPath (bare host directory volume)",
        [("Path", "path", _text), ("HostPathType", "type", lambda kind: "<none>" if kind is None else kind)]),
    "emptyDir": ("EmptyDir (a temporary directory that shares a pod's lifetime)",
        [("Medium", "medium", _text), ("SizeLimit", "sizeLimit", lambda size: size or "<unset>")]),
    "secret": ("Secret (a volume populated by a Secret)", [("SecretName", "secretName", _text), ("Optional", "optional", small_bool)]),
    "configMap": ("ConfigMap (a volume populated by a ConfigMap)", [("Name", "name", _text), ("Optional", "optional", small_bool)]),
    "persistentVolumeClaim": ("PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        [("ClaimName", "claimName", _text), ("ReadOnly", "readOnly", small_bool)]),
    "downwardAPI": ("DownwardAPI (a volume populated by information about the pod)", []),
    "nfs": ("NFS (an NFS mount that lasts the lifetime of a pod)",
        [("Server", "server", _text), ("Path", "path", _text), ("ReadOnly", "readOnly", small_bool)]),
    "csi": ("CSI (a Container Storage Interface (CSI) volume source)",
        [("Driver", "driver", _text), ("FSType", "fsType", _text), ("ReadOnly", "readOnly", small_bool)]),
    "image": ("Image (a container image or OCI artifact)", [("Reference", "reference", _text), ("PullPolicy", "pullPolicy", _text)]),
}  # fmt: skip
_OTHERS: Mapping[str, Callable[[RawObject], list[_Line]]] = {"projected": _projected, "ephemeral": _ephemeral}


def _write_items(out: Columns, source: RawObject) -> None:
    out.write(2, "Items:\n")
    for item in source.get("items") or ():
        path = item["fieldRef"]["fieldPath"] if "fieldRef" in item else item["resourceFieldRef"]["resource"]
        out.write(3, f"{path} -> {item['path']}\n")
