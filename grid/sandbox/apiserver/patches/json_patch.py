"""JSON patch, RFC 6902, in which an operation that cannot be done makes the whole patch fail; and JSON merge patch, RFC 7386."""

import copy
from collections.abc import Sequence
from typing import Any


class CannotApply(Exception):
    """An operation is malformed or names a path that does not exist, or a test failed."""


def json_patch(target: Any, operations: Sequence[Any]) -> Any:
    document = copy.deepcopy(target)
    for operation in operations:
        if not isinstance(operation, dict):
            raise CannotApply("an operation is an object")
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    path = _parts(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _set(document, path, _value(operation), insert=True)
        case "replace":
            _get(document, path)
            return _set(document, path, _value(operation), insert=False)
        case "remove":
            return _remove(document, path)
        case "test":
            if _get(document, path) != _value(operation):
                raise CannotApply(f"testing value {operation['path']} failed")
            return document
        case "copy":
            return _set(document, path, copy.deepcopy(_get(document, _parts(operation.get("from")))), insert=True)
        case "move":
            source = _parts(operation.get("from"))
            value = _get(document, source)
            return _set(_remove(document, source), path, value, insert=True)
        case other:
            raise CannotApply(f"unexpected kind: {other}")


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise CannotApply("the operation has no value")
    return operation["value"]


def _parts(path: Any) -> list[str]:
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise CannotApply(f"{path!r} is not a path")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _index(container: list[Any], part: str, *, end: bool) -> int:
    if part == "-" and end:
        return len(container)
    if not part.isdigit() or int(part) > len(container) - (not end):
        raise CannotApply(f"there is no element {part}")
    return int(part)


def _get(document: Any, parts: list[str]) -> Any:
    for part in parts:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(document, part, end=False)]
        else:
            raise CannotApply(f"there is no {part}")
    return document


def _set(document: Any, parts: list[str], value: Any, *, insert: bool) -> Any:
    if not parts:
        return value
    container = _get(document, parts[:-1])
    if isinstance(container, dict):
        container[parts[-1]] = value
    elif isinstance(container, list):
        index = _index(container, parts[-1], end=insert)
        if insert:
            container.insert(index, value)
        else:
            container[index] = value
    else:
        raise CannotApply(f"there is no place for {parts[-1]}")
    return document


def _remove(document: Any, parts: list[str]) -> Any:
    _get(document, parts)
    if not parts:
        raise CannotApply("the whole document cannot be removed")
    container = _get(document, parts[:-1])
    if isinstance(container, dict):
        del container[parts[-1]]
    else:
        del container[_index(container, parts[-1], end=False)]
    return document


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
