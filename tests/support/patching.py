"""JSON merge patches as a Kubernetes API applies them (RFC 7386)."""

from typing import Any


def merged(old: Any, change: Any) -> Any:
    """Return `old` with the change in it; None in the change deletes, a list replaces."""
    if not isinstance(change, dict):
        return change
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
