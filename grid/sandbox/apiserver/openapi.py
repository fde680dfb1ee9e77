"""OpenAPI v3, as much as clients need: which operations take `fieldValidation`, so that kubectl leaves validation
to the server.
"""

from collections.abc import Sequence
from typing import Any

from grid.sandbox.apiserver.discovery import VERSION
from grid.sandbox.apiserver.kinds import Object, ServedKind


def _root(kind: ServedKind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def index(kinds: Sequence[ServedKind]) -> Object:
    roots = sorted({_root(kind) for kind in kinds})
    return {
        "paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={VERSION['gitVersion']}"} for root in roots}
    }


def document(root: str, kinds: Sequence[ServedKind]) -> Object | None:
    """Return the document of one group and version, or None when it does not exist."""
    described = [kind for kind in kinds if _root(kind) == root]
    if not described:
        return None
    paths: dict[str, Any] = {}
    for kind in described:
        place = "namespaces/{namespace}/" if kind.namespaced else ""
        operations = {
            "get": _operation(kind, ()),
            "patch": _operation(kind, ("dryRun", "fieldManager", "fieldValidation")),
        }
        paths[f"/{root}/{place}{kind.plural}/{{name}}"] = operations
        paths[f"/{root}/{place}{kind.plural}"] = {
            "post": _operation(kind, ("dryRun", "fieldManager", "fieldValidation"))
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": paths,
        "components": {"schemas": {}},
    }


def _operation(kind: ServedKind, parameters: tuple[str, ...]) -> Object:
    return {
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
    }
