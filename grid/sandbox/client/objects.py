"""Reading raw Kubernetes objects: their identity, their owner, their timestamps. All pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]


def name_of(obj: Mapping[str, Any]) -> str:
    return str(obj.get("metadata", {}).get("name", ""))


def namespace_of(obj: Mapping[str, Any]) -> str:
    return str(obj.get("metadata", {}).get("namespace", ""))


def uid_of(obj: Mapping[str, Any]) -> str:
    return str(obj.get("metadata", {}).get("uid", ""))


def key_of(obj: Mapping[str, Any]) -> str:
    """Return `namespace/name`, or `name` for an object without a namespace."""
    namespace = namespace_of(obj)
    return f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return obj.get("metadata", {}).get("labels") or {}


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return obj.get("metadata", {}).get("annotations") or {}


def is_terminating(obj: Mapping[str, Any]) -> bool:
    return bool(obj.get("metadata", {}).get("deletionTimestamp"))


def controller_of(obj: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the owner reference that is marked as the object's controller, or None."""
    for reference in obj.get("metadata", {}).get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None


def condition_of(obj: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    for condition in obj.get("status", {}).get("conditions") or ():
        if condition.get("type") == kind:
            return dict(condition)
    return None


def reference_to(obj: Mapping[str, Any], *, kind: str, api_version: str) -> Object:
    """Return an Event's reference to an object. Items of a list carry no kind, so the caller passes it."""
    meta = obj.get("metadata", {})
    fields = {
        "kind": kind,
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "apiVersion": api_version,
        "resourceVersion": meta.get("resourceVersion"),
    }
    return {key: value for key, value in fields.items() if value}


def parse_time(text: str | None) -> datetime | None:
    """Parse a timestamp as Kubernetes writes it, with or without fractions of a second; return None when it is absent."""
    return datetime.fromisoformat(text) if text else None


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
