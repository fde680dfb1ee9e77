"""Validation: every problem of an object at once, as a 422 with Kubernetes' words.

One module for each family of kinds; each gives functions from an object to a list of causes. Pure.
"""

from collections.abc import Callable, Mapping

from grid.sandbox.apiserver.deletion import new_finalizers_problem
from grid.sandbox.apiserver.kinds import Kind, Object
from grid.sandbox.apiserver.status import Cause, invalid
from grid.sandbox.apiserver.validation.metadata import check_metadata

Check = Callable[[Object], list[Cause]]
UpdateCheck = Callable[[Object, Object], list[Cause]]
_NEW: Mapping[str, Check] = {}
_UPDATES: Mapping[str, UpdateCheck] = {}


def check_new(kind: Kind, obj: Object) -> None:
    causes = check_metadata(kind, obj)
    if kind.resource in _NEW:
        causes += _NEW[kind.resource](obj)
    _raise(kind, obj, causes)


def check_update(kind: Kind, new: Object, old: Object, subresource: str) -> None:
    causes = [*new_finalizers_problem(new, old), *check_metadata(kind, new)]
    if not subresource:
        causes += _UPDATES[kind.resource](new, old) if kind.resource in _UPDATES else []
        causes += _NEW[kind.resource](new) if kind.resource in _NEW else []
    _raise(kind, new, causes)


def _raise(kind: Kind, obj: Object, causes: list[Cause]) -> None:
    if causes:
        raise invalid(kind.kind, kind.group, obj["metadata"].get("name") or "", causes)
