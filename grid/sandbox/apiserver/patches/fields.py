"""Sets of fields of an object, as `managedFields` records them: which fields a manager owns. Pure.

A field is a path of elements as they stand in `fieldsV1`: `f:name` for a field or map key, `k:{"name":"app"}` for
an element of a list that is identified by keys, `v:"x"` for an element of a set. What the schema declares as one
value (a scalar, a list without keys, an atomic struct) is one field.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.schema import CUSTOM, SCHEMA, Field

_ANYTHING = "anything"
FREE = (CUSTOM, _ANYTHING)  # without a schema, an object has fields and anything else is one value
FieldPath: TypeAlias = tuple[str, ...]
# Maps that are one value although their values are scalars.
_ATOMIC_MAPS = {("PodSpec", "nodeSelector"), ("ServiceSpec", "selector")}
# A key of a list's elements may be left out when it has a default.
_KEY_DEFAULTS = {"protocol": "TCP"}
_NOT_OWNED = {
    ("f:apiVersion",),
    ("f:kind",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            *("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"),
            *("deletionGracePeriodSeconds", "generation", "selfLink", "managedFields"),
        )
    ),
}


def fields_of(obj: Object, type_name: str) -> set[FieldPath]:
    """Return the paths of all fields that an object sets, except those that nobody owns."""
    paths = set(_struct(obj, type_name, ()))
    return {path for path in paths if path not in _NOT_OWNED and path[:2] not in _NOT_OWNED and path != ("f:metadata",)}


def _struct(obj: Object, type_name: str, path: FieldPath) -> Iterator[FieldPath]:
    known = SCHEMA.types.get(type_name, {})
    for key, value in obj.items():
        here = (*path, f"f:{key}")
        if key in known:
            yield from _value(value, known[key], here, (type_name, key))
        elif type_name in FREE and isinstance(value, dict) and value:
            yield from _struct(value, _ANYTHING, here)
        else:
            yield here


def _value(value: Any, field: Field, path: FieldPath, where: tuple[str, str]) -> Iterator[FieldPath]:
    if not value or is_atomic(field, where):
        yield path
    elif field.container == "map":
        for key in value:
            yield (*path, f"f:{key}")
    elif field.container == "list":
        for element in value:
            here = (*path, element_name(element, field))
            yield here
            if field.is_struct:
                yield from _struct(element, field.type, here)
    else:
        yield from _struct(value, field.type, path)


def is_atomic(field: Field, where: tuple[str, str]) -> bool:
    if field.container == "list":
        return not field.apply_keys and not field.is_set
    if field.container == "map":
        return where in _ATOMIC_MAPS
    return not field.is_struct or field.type in SCHEMA.atomic


def element_name(element: Any, field: Field) -> str:
    if field.is_set:
        return "v:" + msgspec.json.encode(element).decode()
    keys = {key: element.get(key, _KEY_DEFAULTS.get(key)) for key in field.apply_keys}
    return "k:" + msgspec.json.encode({key: keys[key] for key in sorted(keys) if keys[key] is not None}).decode()


def encode(paths: set[FieldPath]) -> Object:
    """Return the paths as `fieldsV1`: nested objects, where "." marks an element that is itself owned and has fields below."""
    tree: Object = {}
    parents = {path[:length] for path in paths for length in range(1, len(path))}
    for path in sorted(paths):
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        if path in parents:
            node.setdefault(".", {})
    return tree


def decode(tree: Mapping[str, Any]) -> set[FieldPath]:
    found: set[FieldPath] = set()

    def walk(node: Mapping[str, Any], path: FieldPath) -> None:
        if path and (not node or "." in node):
            found.add(path)
        for part, inner in node.items():
            if part != ".":
                walk(inner, (*path, part))

    walk(tree, ())
    return found


def readable(path: FieldPath) -> str:
    """Return a path as text, like .spec.template.spec.containers[name="app"].image"""
    text = ""
    for part in path:
        kind, content = part[:2], part[2:]
        if kind == "f:":
            text += f".{content}"
        elif kind == "k:":
            keys = msgspec.json.decode(content)
            text += "[" + ",".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items()) + "]"
        else:
            text += f"[={content}]"
    return text


_ABSENT = object()


def lookup(obj: Any, path: FieldPath) -> Any:
    """Return the value at a path, or a marker that equals no value when the path does not exist."""
    for part in path:
        kind, content = part[:2], part[2:]
        if kind == "f:":
            obj = obj.get(content, _ABSENT) if isinstance(obj, dict) else _ABSENT
        else:
            obj = next((each for each in obj or () if matches(each, kind, content)), _ABSENT)
        if obj is _ABSENT:
            return _ABSENT
    return obj


def matches(element: Any, kind: str, content: str) -> bool:
    wanted = msgspec.json.decode(content)
    if kind == "v:":
        return bool(element == wanted)
    return isinstance(element, dict) and all(
        element.get(key, _KEY_DEFAULTS.get(key)) == value for key, value in wanted.items()
    )


def remove(obj: Any, path: FieldPath) -> None:
    """Remove the field at a path from an object, if it exists."""
    container = lookup(obj, path[:-1]) if len(path) > 1 else obj
    kind, content = path[-1][:2], path[-1][2:]
    if kind == "f:" and isinstance(container, dict):
        container.pop(content, None)
    elif isinstance(container, list):
        container[:] = [each for each in container if not matches(each, kind, content)]
