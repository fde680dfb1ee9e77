"""The four kinds of patch of the Kubernetes API, for the fake cluster.

Strategic merge and apply are simplified: a list of objects is merged by the first of its usual keys (name, type, key ...),
every other list is replaced. Deleting one list element uses `$patch: delete`, as on a real server.
"""

import copy
from typing import Any

from grid.errors import Problem, Rejected
from grid.kube.objects import RawObject

_MERGE_KEYS = ("uid", "name", "type", "containerPort", "mountPath", "ip", "topologyKey")


def patched(old: RawObject, body: object, kind: str) -> RawObject:
    """A new object; `old` is left as it was."""
    new = copy.deepcopy(old)
    if kind == "json":
        if not isinstance(body, list):
            raise Rejected([Problem("", "a JSON patch is a list of operations")])
        for operation in body:
            _operate(new, operation)
        return new
    if not isinstance(body, dict):
        raise Rejected([Problem("", "a patch is an object")])
    merged = _merge(new, copy.deepcopy(body), by_key=kind != "merge")
    return dict(merged)


def _merge(old: Any, change: Any, *, by_key: bool) -> Any:
    if not isinstance(change, dict):
        return _merge_lists(old, change) if by_key and isinstance(change, list) and isinstance(old, list) else change
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value, by_key=by_key)
    return result


def _merge_lists(old: list[Any], change: list[Any]) -> list[Any]:
    key = next((key for key in _MERGE_KEYS if change and all(isinstance(i, dict) and key in i for i in change)), None)
    if key is None:
        return change
    result = list(old)
    for item in change:
        place = next((i for i, known in enumerate(result) if known.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del result[place]
        elif place is None:
            result.append(item)
        else:
            result[place] = _merge(result[place], item, by_key=True)
    return result


def _operate(document: Any, operation: RawObject) -> None:
    *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
    try:
        for step in parents:
            document = document[int(step)] if isinstance(document, list) else document[step]
        _apply_operation(document, last, operation)
    except (KeyError, IndexError, ValueError) as error:
        raise Rejected([Problem(operation["path"], f"the server rejected our request: {error}")]) from error


def _apply_operation(parent: Any, last: str, operation: RawObject) -> None:
    verb = operation["op"]
    index: Any = last if isinstance(parent, dict) else len(parent) if last == "-" else int(last)
    if verb == "add" and isinstance(parent, list):
        parent.insert(index, operation["value"])
    elif verb == "add":
        parent[index] = operation["value"]
    elif verb == "replace":
        if parent[index] is not None:
            parent[index] = operation["value"]
    elif verb == "remove":
        del parent[index]
    elif verb == "test":
        if parent[index] != operation.get("value"):
            raise ValueError("test failed")
    else:
        raise ValueError(f"unknown operation {verb}")
