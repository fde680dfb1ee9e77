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
        kind = next((name for name in _KINDS if name in volume), "")
        if not kind:
            out.write(2, "<unknown>\n")
            continue
        for title, value in _KINDS[kind](volume[kind] or {}):
            out.write(2, f"{title}:\t{value}\n")
        if kind == "downwardAPI":
            _write_items(out, volume[kind])
        if kind == "csi" and volume[kind].get("volumeAttributes"):
            _write_attributes(out, volume[kind]["volumeAttributes"])


def _empty_dir(source: RawObject) -> list[Line]:
    return [
        ("Type", "EmptyDir (a temporary directory that shares a pod's lifetime)"),
        ("Medium", source.get("medium", "")),
        ("SizeLimit", source.get("sizeLimit") or "<unset>"),
    ]


def _host_path(source: RawObject) -> list[Line]:
    return [
        ("Type", "HostPath (bare host directory volume)"),
        ("Path", source.get("path", "")),
        ("HostPathType", source["type"] if source.get("type") is not None else "<none>"),
    ]


def _secret(source: RawObject) -> list[Line]:
    return [
        ("Type", "Secret (a volume populated by a Secret)"),
        ("SecretName", source.get("secretName", "")),
        ("Optional", small_bool(source.get("optional"))),
    ]


def _config_map(source: RawObject) -> list[Line]:
    return [
        ("Type", "ConfigMap (a volume populated by a ConfigMap)"),
        ("Name", source.get("name", "")),
        ("Optional", small_bool(source.get("optional"))),
    ]


def _claim(source: RawObject) -> list[Line]:
    return [
        ("Type", "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)"),
        ("ClaimName", source.get("claimName", "")),
        ("ReadOnly", small_bool(source.get("readOnly"))),
    ]


def _projected(source: RawObject) -> list[Line]:
    lines: list[Line] = [("Type", "Projected (a volume that contains injected data from multiple sources)")]
    for one in source.get("sources") or ():
        if "secret" in one:
            lines.append(("SecretName", one["secret"].get("name", "")))
            lines.append(("Optional", small_bool(one["secret"].get("optional"))))
        elif "downwardAPI" in one:
            lines.append(("DownwardAPI", "true"))
        elif "configMap" in one:
            lines.append(("ConfigMapName", one["configMap"].get("name", "")))
            lines.append(("Optional", small_bool(one["configMap"].get("optional"))))
        elif "serviceAccountToken" in one:
            lines.append(("TokenExpirationSeconds", one["serviceAccountToken"].get("expirationSeconds", 0)))
    return lines


def _downward(source: RawObject) -> list[Line]:
    return [("Type", "DownwardAPI (a volume populated by information about the pod)")]


def _nfs(source: RawObject) -> list[Line]:
    return [
        ("Type", "NFS (an NFS mount that lasts the lifetime of a pod)"),
        ("Server", source.get("server", "")),
        ("Path", source.get("path", "")),
        ("ReadOnly", small_bool(source.get("readOnly"))),
    ]


def _csi(source: RawObject) -> list[Line]:
    return [
        ("Type", "CSI (a Container Storage Interface (CSI) volume source)"),
        ("Driver", source.get("driver", "")),
        ("FSType", source.get("fsType") or ""),
        ("ReadOnly", small_bool(source.get("readOnly"))),
    ]


def _image(source: RawObject) -> list[Line]:
    return [
        ("Type", "Image (a container image or OCI artifact)"),
        ("Reference", source.get("reference", "")),
        ("PullPolicy", source.get("pullPolicy", "")),
    ]


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


_KINDS: dict[str, Callable[[RawObject], list[Line]]] = {
    "hostPath": _host_path,
    "emptyDir": _empty_dir,
    "secret": _secret,
    "configMap": _config_map,
    "persistentVolumeClaim": _claim,
    "projected": _projected,
    "downwardAPI": _downward,
    "nfs": _nfs,
    "csi": _csi,
    "image": _image,
    "ephemeral": _ephemeral,
}


def _write_items(out: Columns, source: RawObject) -> None:
    out.write(2, "Items:\n")
    for item in source.get("items") or ():
        path = item["fieldRef"]["fieldPath"] if "fieldRef" in item else item["resourceFieldRef"]["resource"]
        out.write(3, f"{path} -> {item['path']}\n")


def _write_attributes(out: Columns, attributes: RawObject) -> None:
    for index, key in enumerate(sorted(attributes)):
        out.write(2 if index == 0 else 0, "VolumeAttributes:\t" if index == 0 else "\t")
        out.write(2, f"{key}={attributes[key]}\n")
