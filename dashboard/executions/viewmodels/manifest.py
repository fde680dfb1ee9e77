"""Prepares a whole Kubernetes object for people to read as YAML, without managedFields and a Secret's values; pure."""

from typing import Any

import msgspec
import yaml

from grid.kube.objects import RawObject
from grid.kube.redaction import HIDDEN, LAST_APPLIED, Redactor


def as_yaml(obj: RawObject) -> str:
    return yaml.safe_dump(presentable(obj), sort_keys=False, allow_unicode=True, width=120)


def redacted_yaml(redactor: Redactor, obj: RawObject) -> str:
    return as_yaml(redactor.object(obj))


def redacted_list(redactor: Redactor, page: bytes) -> str:
    """Return the objects of a list, which is JSON, one document after the other."""
    items: list[RawObject] = msgspec.json.decode(page)["items"]
    return "---\n".join(redacted_yaml(redactor, item) for item in items) or "# none\n"


def presentable(obj: RawObject) -> RawObject:
    """Return the object without managedFields. A Secret's values are hidden, and so is the copy that `kubectl apply` keeps."""
    metadata: dict[str, Any] = dict(obj.get("metadata") or {})
    metadata.pop("managedFields", None)
    shown = {**obj, "metadata": metadata}
    if obj.get("kind") != "Secret":
        return shown
    for field in ("data", "stringData"):
        if field in shown:
            shown[field] = dict.fromkeys(shown[field] or {}, HIDDEN)
    annotations = metadata.get("annotations") or {}
    if LAST_APPLIED in annotations:
        metadata["annotations"] = {**annotations, LAST_APPLIED: HIDDEN}
    return shown
