"""The volumes of a pod's description."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grid.diagnosis.describe.columns import Columns
from grid.diagnosis.describe.common import RawObject
from grid.diagnosis.describe.values import small_bool

Line = tuple[str, Any]


def write_volumes(out: Columns, volumes: Sequence[RawObject]) -> None:
    out.write(0, "Volumes:\n" if volumes else "Volumes:\t<none>\n")
    for volume in volumes:
        out.write(1, f"{volume['name']}:\n")
        kind = next((name for name in (*_FIELDS, *_OTHERS) if name in volume), "")
        if not kind:
            out.write(2, "<unknown>\n")
            continue
        for title, value in _lines(kind, volume[kind] or {}):
            out.write(2, f"{title}:\t{value}\n")
        if kind == "downwardAPI":
            _write_items(out, volume[kind])
        if kind == "csi" and volume[kind].get("volumeAttributes"):
            _write_attributes(out, volume[kind]["volumeAttributes"])


def _projected(source: RawObject) -> list[Line]:
    lines: list[Line] = [("Type", "Projected (a volume that contains injected data from multiple sources)")]
    for part in source.get("sources") or ():
        if "secret" in part:
            lines.append(("SecretName", part["secret"].get("name", "")))
            lines.append(("Optional", small_bool(part["secret"].get("optional"))))
        elif "downwardAPI" in part:
            lines.append(("DownwardAPI", "true"))
        elif "configMap" in part:
            lines.append(("ConfigMapName", part["configMap"].get("name", "")))
            lines.append(("Optional", small_bool(part["configMap"].get("optional"))))
        elif "serviceAccountToken" in part:
            lines.append(("TokenExpirationSeconds", part["serviceAccountToken"].get("expirationSeconds", 0)))
    return lines


def _ephemeral(source: RawObject) -> list[Line]:
    template = source.get("volumeClaimTemplate") or {}
    spec, metadata = template.get("spec") or {}, template.get("metadata") or {}
    return [
        (
            "Type",
            "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)",
        ),
        ("StorageClass", spec.get("storageClassName", "")),
        ("Volume", spec.get("volumeName", "")),
        *_pairs("Labels", metadata.get("labels") or {}, "="),
        *_pairs("Annotations", metadata.get("annotations") or {}, ": "),
        ("Capacity", ""),
        ("Access Modes", ""),
        *([("VolumeMode", spec["volumeMode"])] if spec.get("volumeMode") else ()),
    ]


def _pairs(title: str, pairs: Mapping[str, str], sign: str) -> list[Line]:
    """Return a line for each pair; kubectl indents them by four blanks of their own."""
    texts = [f"    {key}{sign}{pairs[key]}" for key in sorted(pairs)] or ["    <none>"]
    return [(title, text) for text in texts]


def _text(value: str | None) -> str:
    return value or ""


# Of each kind: what it is, and the fields that are shown, as title, name and how the value is written.
_FIELDS: Mapping[str, tuple[str, Sequence[tuple[str, str, Callable[[Any], str]]]]] = {
    "hostPath": (
        "HostPath (bare host directory volume)",
        [("Path", "path", _text), ("HostPathType", "type", lambda kind: "<none>" if kind is None else kind)],
    ),
    "emptyDir": (
        "EmptyDir (a temporary directory that shares a pod's lifetime)",
        [("Medium", "medium", _text), ("SizeLimit", "sizeLimit", lambda size: size or "<unset>")],
    ),
    "secret": (
        "Secret (a volume populated by a Secret)",
        [("SecretName", "secretName", _text), ("Optional", "optional", small_bool)],
    ),
    "configMap": (
        "ConfigMap (a volume populated by a ConfigMap)",
        [("Name", "name", _text), ("Optional", "optional", small_bool)],
    ),
    "persistentVolumeClaim": (
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        [("ClaimName", "claimName", _text), ("ReadOnly", "readOnly", small_bool)],
    ),
    "downwardAPI": ("DownwardAPI (a volume populated by information about the pod)", []),
    "nfs": (
        "NFS (an NFS mount that lasts the lifetime of a pod)",
        [("Server", "server", _text), ("Path", "path", _text), ("ReadOnly", "readOnly", small_bool)],
    ),
    "csi": (
        "CSI (a Container Storage Interface (CSI) volume source)",
        [("Driver", "driver", _text), ("FSType", "fsType", _text), ("ReadOnly", "readOnly", small_bool)],
    ),
    "image": (
        "Image (a container image or OCI artifact)",
        [("Reference", "reference", _text), ("PullPolicy", "pullPolicy", _text)],
    ),
}
_OTHERS: Mapping[str, Callable[[RawObject], list[Line]]] = {"projected": _projected, "ephemeral": _ephemeral}


def _lines(kind: str, source: RawObject) -> list[Line]:
    if kind in _OTHERS:
        return _OTHERS[kind](source)
    what, fields = _FIELDS[kind]
    return [("Type", what), *((title, words(source.get(field))) for title, field, words in fields)]


def _write_items(out: Columns, source: RawObject) -> None:
    out.write(2, "Items:\n")
    for item in source.get("items") or ():
        path = item["fieldRef"]["fieldPath"] if "fieldRef" in item else item["resourceFieldRef"]["resource"]
        out.write(3, f"{path} -> {item['path']}\n")


def _write_attributes(out: Columns, attributes: RawObject) -> None:
    for index, key in enumerate(sorted(attributes)):
        out.write(2 if index == 0 else 0, "VolumeAttributes:\t" if index == 0 else "\t")
        out.write(2, f"{key}={attributes[key]}\n")
