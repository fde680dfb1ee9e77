"""Server-side apply: every manager names the fields it wants, and owns them until it leaves them out. Pure
functions.

Ownership by apply is kept for every object. Ownership by update is kept only where somebody has applied before,
because it matters only there; an object that nobody applies carries no `managedFields`.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.patches.fields import (
    FREE,
    FieldPath,
    decode,
    element_name,
    encode,
    fields_of,
    is_atomic,
    lookup,
    readable,
    remove,
)
from grid.sandbox.apiserver.schema import SCHEMA, Field


@dataclass(frozen=True, slots=True)
class Manager:
    """The author of a change, as `managedFields` names it."""

    name: str
    api_version: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class FieldConflict:
    owner: str  # as it is named in messages
    field: str


class Conflicts(Exception):
    """Other managers own fields for which this manager wants another value."""

    def __init__(self, conflicts: Sequence[FieldConflict]) -> None:
        super().__init__(conflicts)
        self.conflicts = tuple(conflicts)

    def message(self) -> str:
        count = len(self.conflicts)
        if count == 1:
            only = self.conflicts[0]
            return f"Apply failed with 1 conflict: conflict with {only.owner}: {only.field}"
        lines: list[str] = []
        for owner in dict.fromkeys(each.owner for each in self.conflicts):
            lines.append(f"conflicts with {owner}:")
            lines += [f"- {each.field}" for each in self.conflicts if each.owner == owner]
        return f"Apply failed with {count} conflicts: " + "\n".join(lines)


def apply(live: Object, wanted: Object, type_name: str, manager: Manager, *, force: bool, now: str) -> Object:
    """Return the live object (an empty one, if it is new) merged with what the manager wants. Raise `Conflicts`."""
    entries: list[Object] = copy.deepcopy(live["metadata"].get("managedFields") or [])
    own = _find(entries, manager, "Apply")
    claims = fields_of(wanted, type_name)
    conflicts = [
        FieldConflict(_owner(entry), readable(path))
        for entry in entries
        if entry is not own
        for path in sorted(decode(entry["fieldsV1"]) & claims)
        if not _is_element(path, wanted) and lookup(live, path) != lookup(wanted, path)
    ]
    if conflicts and not force:
        raise Conflicts(conflicts)
    lost = {path for path in claims if lookup(live, path) != lookup(wanted, path)}
    result = _merge(live, wanted, type_name)
    before = decode(own["fieldsV1"]) if own else set()
    others: set[FieldPath] = set()
    for entry in entries:
        if entry is not own:
            kept = decode(entry["fieldsV1"])
            if force:
                kept -= {path for path in lost if not _is_element(path, wanted)}
            entry["fieldsV1"] = encode(kept)
            others |= kept
    owned = claims | others
    for path in sorted(before - owned, key=len):
        if not any(other[: len(path)] == path for other in owned):  # another field inside of it is owned
            remove(result, path)
    if own is None:
        own = _entry(manager, "Apply")
        entries.append(own)
    if own.get("fieldsV1") != encode(claims) or "time" not in own:
        own |= {"fieldsV1": encode(claims), "time": now}
    result["metadata"]["managedFields"] = [entry for entry in entries if entry["fieldsV1"] or entry is own]
    return result


def record_update(before: Object, after: Object, type_name: str, manager: Manager, now: str) -> None:
    """Make the manager of an ordinary change the owner of the fields it changed, if anybody has applied the object."""
    entries: list[Object] = copy.deepcopy(before["metadata"].get("managedFields") or [])
    if not entries:
        return
    old, new = fields_of(before, type_name), fields_of(after, type_name)
    gone = old - new
    changed = {path for path in new if path not in old or lookup(before, path) != lookup(after, path)}
    changed = {path for path in changed if path not in old or not _has_fields(path, new)}
    for entry in entries:
        entry["fieldsV1"] = encode(decode(entry["fieldsV1"]) - gone - changed)
    if changed:
        own = _find(entries, manager, "Update")
        if own is None:
            own = _entry(manager, "Update")
            entries.append(own)
        own |= {"fieldsV1": encode(decode(own.get("fieldsV1") or {}) | changed), "time": now}
    after["metadata"]["managedFields"] = [entry for entry in entries if entry["fieldsV1"]]


def _has_fields(path: FieldPath, paths: set[FieldPath]) -> bool:
    """Return True for an element of a list whose fields are owned separately."""
    return path[-1][:2] == "k:" and any(len(other) > len(path) and other[: len(path)] == path for other in paths)


def _is_element(path: FieldPath, wanted: Object) -> bool:
    """Return True for an element of a list: two managers may both have it, and only its fields can conflict."""
    return path[-1][:2] != "f:" or lookup(wanted, path) == {}


def _find(entries: Sequence[Object], manager: Manager, operation: str) -> Object | None:
    wanted = (manager.name, operation, manager.subresource)
    for entry in entries:
        if (entry["manager"], entry["operation"], entry.get("subresource", "")) == wanted:
            return entry
    return None


def _entry(manager: Manager, operation: str) -> Object:
    entry: Object = {"manager": manager.name, "operation": operation, "apiVersion": manager.api_version}
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry | {"fieldsType": "FieldsV1"}


def _owner(entry: Object) -> str:
    text = f'"{entry["manager"]}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    return text if entry["operation"] == "Apply" else f"{text} using {entry['apiVersion']}"


def _merge(live: Object, wanted: Object, type_name: str) -> Object:
    known = SCHEMA.types.get(type_name, {})
    result = dict(live)
    for key, value in wanted.items():
        field = known.get(key)
        if field is None and type_name in FREE and isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = _merge(result[key], value, FREE[-1])
        elif field is None or is_atomic(field, (type_name, key)):
            result[key] = value
        elif field.container == "list":
            result[key] = _merge_list(result.get(key) or [], value, field)
        elif field.container == "map":
            result[key] = {**(result.get(key) or {}), **value}
        else:
            result[key] = _merge(result.get(key) or {}, value, field.type)
    return result


def _merge_list(live: list[Any], wanted: list[Any], field: Field) -> list[Any]:
    result = list(live)
    places = {element_name(each, field): number for number, each in enumerate(live)}
    for element in wanted:
        place = places.get(element_name(element, field))
        if place is None:
            result.append(element)
        elif field.is_struct:
            result[place] = _merge(result[place], element, field.type)
    return result
