"""Kubernetes' label selectors and node selectors, on plain data."""

from collections.abc import Mapping, Sequence
from typing import Any

from grid.sandbox.client import name_of


def matches_labels(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Return True when a LabelSelector matches; None matches nothing, an empty one matches everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(matches_requirement(item, labels) for item in selector.get("matchExpressions") or ())


def matches_requirement(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return True when one expression of a label or node selector matches; an unknown operator matches nothing."""
    value = labels.get(requirement["key"])
    values: Sequence[str] = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compares(value, values, above=True)
        case "Lt":
            return _compares(value, values, above=False)
        case _:
            return False


def _compares(value: str | None, values: Sequence[str], *, above: bool) -> bool:
    try:
        left, right = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if above else left < right


def matches_node_term(term: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Return True when one node selector term matches; an empty one matches no node."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    labels = node.get("metadata", {}).get("labels") or {}
    return all(matches_requirement(item, labels) for item in expressions) and all(
        matches_requirement(item, {"metadata.name": name_of(node)}) for item in fields
    )


def required_node_terms(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """Return the terms of a pod's required node affinity, or None when it has none."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else (required.get("nodeSelectorTerms") or ())


def fits_node_selection(pod: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Return True when a node satisfies both `nodeSelector` and required node affinity."""
    labels = node.get("metadata", {}).get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    terms = required_node_terms(pod)
    return terms is None or any(matches_node_term(term, node) for term in terms)
