"""JSON merge patch (RFC 7386), and strategic merge patch: a merge patch in which some lists are merged by a key instead of being replaced.

Which lists those are, and by which key, is in the schema. Directives: `$patch: replace|delete|merge`,
`$retainKeys`, `$deleteFromPrimitiveList/<list>`, `$setElementOrder/<list>`. New elements of a list go to its front,
as in Kubernetes, unless an element order says otherwise.
"""

from collections.abc import Mapping
from typing import Any

from grid.sandbox.apiserver.schema import SCHEMA, Field

_PATCH, _RETAIN = "$patch", "$retainKeys"
_DELETE_FROM, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"
_UNKNOWN = Field("any", is_struct=False)


class NoMergeKey(Exception):
    """An element of a merged list lacks the merge key."""


def merge_patch(target: Any, patch: Any) -> Any:
    """Return the target with the patch applied; null removes a key."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_merge(target: Any, patch: Any, type_name: str) -> Any:
    """Return the target, of the schema's type `type_name`, with the patch applied."""
    if not isinstance(patch, dict):
        return patch
    return _merge_map(target if isinstance(target, dict) else {}, patch, type_name)


def _fields(type_name: str) -> Mapping[str, Field]:
    return SCHEMA.types.get(type_name, {})


def _merge_map(target: Mapping[str, Any], patch: Mapping[str, Any], type_name: str) -> dict[str, Any]:
    directive = patch.get(_PATCH)
    if directive == "delete":
        return {}
    plain = {key: value for key, value in patch.items() if not key.startswith("$")}
    if directive == "replace":
        return {key: value for key, value in plain.items() if value is not None}
    result = dict(target)
    if _RETAIN in patch:
        result = {key: value for key, value in result.items() if key in patch[_RETAIN]}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            name = key.removeprefix(_DELETE_FROM)
            result[name] = [each for each in result.get(name) or () if each not in value]
    fields = _fields(type_name)
    for key, value in plain.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge_value(result.get(key), value, fields.get(key, _UNKNOWN), patch.get(_ORDER + key))
    for key, order in patch.items():
        name = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and name not in plain and name in result:
            result[name] = _ordered(result[name], order, result[name], fields.get(name, _UNKNOWN).patch_key)
    return result


def _merge_value(target: Any, value: Any, field: Field, order: Any) -> Any:
    if isinstance(value, dict):
        # A map has no schema fields of its own, so its values are merged without one.
        inner = field.type if field.is_struct and not field.container else ""
        return _merge_map(target if isinstance(target, dict) else {}, value, inner)
    if not isinstance(value, list):
        return value
    existing = target if isinstance(target, list) else []
    if field.is_set:
        merged = existing + [each for each in value if each not in existing]
        return _ordered(merged, value if order is None else order, existing, "")
    key = field.patch_key
    if not key or not all(isinstance(each, dict) for each in (*value, *existing)):
        return value
    merged = _merge_list(existing, value, key, field.type)
    wanted = [each for each in value if "$patch" not in each] if order is None else order
    return _ordered(merged, wanted, existing, key)


def _merge_list(target: list[Any], patch: list[Any], key: str, type_name: str) -> list[Any]:
    replaced = any(each.get(_PATCH) == "replace" and len(each) == 1 for each in patch)
    result: list[Any] = [] if replaced else list(target)
    for element in patch:
        if element.get(_PATCH) == "replace" and len(element) == 1:
            continue
        if key not in element:
            text = " ".join(f"{field}:{value}" for field, value in sorted(element.items()))
            raise NoMergeKey(f"map: map[{text}] does not contain declared merge key: {key}")
        position = next((n for n, each in enumerate(result) if each.get(key) == element[key]), None)
        if element.get(_PATCH) == "delete":
            result = [each for each in result if each.get(key) != element[key]]
        elif position is not None:
            result[position] = _merge_map(result[position], element, type_name)
        else:
            result.append(_merge_map({}, element, type_name))
    return result


def _ordered(merged: list[Any], wanted: list[Any], live: list[Any], key: str) -> list[Any]:
    """Return the elements of `wanted` in its order, interleaved with the others as they stood in the live list.

    This is Kubernetes' procedure: an element that only the server has stays before the first wanted one that it
    preceded in the live list.
    """

    def identity(element: Any) -> Any:
        return element.get(key) if key and isinstance(element, dict) else element

    places = [identity(each) for each in wanted]
    right = sorted((each for each in merged if identity(each) in places), key=lambda each: places.index(identity(each)))
    left = [each for each in merged if identity(each) not in places]
    stood = [identity(each) for each in live]
    result: list[Any] = []
    while left and right:
        mine, other = identity(left[0]), identity(right[0])
        before = mine in stood and other in stood and stood.index(mine) < stood.index(other)
        result.append(left.pop(0) if before else right.pop(0))
    return result + left + right
