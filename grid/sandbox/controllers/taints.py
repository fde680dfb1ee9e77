"""Taints and tolerations, on plain data."""

from collections.abc import Iterable, Mapping
from typing import Any

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    # Without a key only Exists is meaningful; Equal is the default operator.
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def untolerated(
    tolerations: Iterable[Mapping[str, Any]], taints: Iterable[Mapping[str, Any]], effects: frozenset[str]
) -> list[Mapping[str, Any]]:
    """Return the taints with one of these effects that no toleration covers."""
    known = list(tolerations)
    return [
        taint
        for taint in taints
        if taint.get("effect") in effects and not any(tolerates(item, taint) for item in known)
    ]
