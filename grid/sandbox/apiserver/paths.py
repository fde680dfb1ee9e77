"""Request paths: which kind, namespace, object and subresource a URL names. Pure."""

from dataclasses import dataclass

from grid.sandbox.apiserver.kinds import ServedKind, Subresource, find_kind, has_group
from grid.sandbox.apiserver.status import no_such_path


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """The target of a resource path. `name` "" is the collection, `namespace` "" is all namespaces."""

    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: Subresource | None = None

    @property
    def prefix(self) -> str:
        """The beginning of every key in the collection."""
        return f"{self.namespace}/" if self.kind.namespaced and self.namespace else ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.kind.namespaced else self.name


class UnknownGroup(Exception):
    """The path is outside the API; the answer is plain text."""


def parse_path(path: str) -> ResourcePath:
    """Return the target of a path. Raise UnknownGroup outside the API, and a 404 `Failure` for what the API lacks."""
    parts = [part for part in path.split("/") if part]
    if parts[:2] == ["api", "v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 3 and has_group(parts[1]):
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise UnknownGroup(path)
    if not has_group(group, version):
        raise no_such_path()
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and not _is_namespace_subresource(group, rest):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:
        raise no_such_path()
    return _parse_resource(find_kind(group, version, rest[0]), namespace, rest)


def _parse_resource(kind: ServedKind | None, namespace: str, rest: list[str]) -> ResourcePath:
    if kind is None or (bool(namespace) and not kind.namespaced):
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    if name and kind.namespaced and not namespace:
        raise no_such_path()
    subresource = kind.subresource(rest[2]) if len(rest) == 3 else None
    if len(rest) == 3 and subresource is None:
        raise no_such_path()
    return ResourcePath(kind, namespace, name, subresource)


def _is_namespace_subresource(group: str, rest: list[str]) -> bool:
    return not group and len(rest) == 3 and rest[2] in ("status", "finalize")
