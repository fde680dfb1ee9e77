"""Custom resources: CustomResourceDefinitions become kinds that are served like the built-in ones, from the moment of their creation.

Objects are kept as they are sent: nothing of a version's schema is enforced or filled in, and between versions only `apiVersion`
changes. The first definition in a group that wants a kind's name has it; a later one gets a condition
that says so and is not served. A deleted definition stays, terminating, until its objects are gone. Definitions in built-in groups
are refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grid.core.regexes import Expression
from grid.sandbox.apiserver.kinds import KINDS, STATUS, Object, ServedKind, find_kind, has_group, stored_kinds
from grid.sandbox.apiserver.status import StatusCause, required, unsupported, wrong
from grid.sandbox.apiserver.store import ObjectStore, StoreEvent

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_SCOPES = ("Cluster", "Namespaced")
_VERSION = Expression(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = {"alpha": 0, "beta": 1, "": 2}


class Kinds:
    """All kinds of one API server: the built-in table, and the kinds that the definitions in its store add."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._custom: Mapping[tuple[str, str, str], ServedKind] = {}
        self._stored: Mapping[str, ServedKind] = {}
        self._look()
        store.listen(DEFINITIONS, self._changed)

    def _changed(self, change: StoreEvent) -> None:
        self._look()

    def _look(self) -> None:
        served = [kind for record in self._store.records(DEFINITIONS) for kind in kinds_of(record.obj)]
        self._custom = {(kind.group, kind.version, kind.plural): kind for kind in served}
        # Objects whose version is no longer served still exist, and can still be deleted.
        defined = (_stored_kind(record.obj) for record in self._store.records(DEFINITIONS))
        self._stored = {**stored_kinds(), **{kind.resource: kind for kind in defined}}

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        return find_kind(group, version, plural) or self._custom.get((group, version, plural))

    def stored(self) -> Mapping[str, ServedKind]:
        """Return the kinds that have objects of their own, by resource."""
        return self._stored

    def all(self) -> Sequence[ServedKind]:
        return [*KINDS, *self._custom.values()]

    def custom(self) -> Sequence[ServedKind]:
        return list(self._custom.values())

    def has(self, group: str, version: str = "") -> bool:
        return any(kind.group == group and version in ("", kind.version) for kind in self.all())


def kinds_of(definition: Object) -> Iterator[ServedKind]:
    """Yield the kinds that an established definition serves, the preferred version first."""
    if not _has_condition(definition, "Established"):
        return
    versions = [each for each in definition["spec"]["versions"] if each.get("served")]
    for version in sorted(versions, key=lambda each: _priority(each["name"]), reverse=True):
        yield _kind(definition, version)


def _stored_kind(definition: Object) -> ServedKind:
    return _kind(definition, next(each for each in definition["spec"]["versions"] if each.get("storage")))


def _kind(definition: Object, version: Object) -> ServedKind:
    spec = definition["spec"]
    names, stored = spec["names"], next(each["name"] for each in spec["versions"] if each.get("storage"))
    resource = f"{names['plural']}.{spec['group']}"
    return ServedKind(
        names["kind"],
        names["plural"],
        spec["group"],
        version["name"],
        namespaced=spec["scope"] == "Namespaced",
        short=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=(STATUS,) if "status" in (version.get("subresources") or {}) else (),
        counts_generations=True,
        view_of=resource,
        custom_storage=f"{spec['group']}/{stored}",
    )


def _priority(version: str) -> tuple[int, int, int, str]:
    """Return a sort key for Kubernetes' order of versions: stable over beta over alpha, higher numbers first, others last."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0, version)
    return (_STAGES[match[2] or ""], int(match[1]), int(match[3] or 0), "")


def _has_condition(definition: Object, name: str) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == name and each["status"] == "True" for each in conditions)


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that a definition claims in its group."""

    plural: str
    wanted: frozenset[str]

    @classmethod
    def of(cls, definition: Object) -> "_Names":
        names = definition["spec"]["names"]
        resources = {names["plural"], names["singular"], *(names.get("shortNames") or ())}
        return cls(names["plural"], frozenset({*resources, f"kind {names['kind']}", f"kind {names['listKind']}"}))


def status_of(store: ObjectStore, definition: Object, now: str) -> Object:
    """Return a definition's status: accepted and established, unless another definition has its names."""
    others = [
        _Names.of(record.obj)
        for record in store.records(DEFINITIONS)
        if record.obj["spec"]["group"] == definition["spec"]["group"] and _has_condition(record.obj, "NamesAccepted")
    ]
    own = _Names.of(definition)
    taken = sorted({name for other in others if other.plural != own.plural for name in other.wanted & own.wanted})
    if taken:
        problem = f'"{taken[0].removeprefix("kind ")}" is already in use'
        conditions = [
            ("NamesAccepted", "False", "NameConflict", problem),
            ("Established", "False", "NotAccepted", "not all names are accepted"),
        ]
    else:
        conditions = [
            ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
        ]
    before = definition.get("status") or {}
    known = {each["type"]: each for each in before.get("conditions") or ()}
    stored = next(each["name"] for each in definition["spec"]["versions"] if each.get("storage"))
    versions = [each for each in before.get("storedVersions") or () if each != stored]
    return {
        "conditions": [_condition(known.get(each[0], {}), each, now) for each in conditions],
        "acceptedNames": {} if taken else definition["spec"]["names"],
        "storedVersions": [*versions, stored],
    }


def _condition(before: Object, wanted: tuple[str, str, str, str], now: str) -> Object:
    name, status, reason, message = wanted
    since = before["lastTransitionTime"] if before.get("status") == status else now
    return {"lastTransitionTime": since, "message": message, "reason": reason, "status": status, "type": name}


def definition_defaults(definition: Object) -> None:
    spec = definition.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    definition.setdefault("status", {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}})


def check_definition(definition: Object) -> list[StatusCause]:
    spec, name = definition["spec"], definition["metadata"]["name"]
    names, versions = spec["names"], spec.get("versions") or []
    causes = [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
    if not spec.get("group"):
        causes.append(required("spec.group"))
    elif has_group(spec["group"]):
        causes.append(wrong("spec.group", spec["group"], "the embedded cluster serves this group itself"))
    if spec.get("scope") not in _SCOPES:
        causes.append(unsupported("spec.scope", spec.get("scope", ""), _SCOPES))
    if sum(1 for each in versions if each.get("storage")) != 1:
        told = "must have exactly one version marked as storage version"
        causes.append(wrong("spec.versions", [each.get("name", "") for each in versions], told))
    for number, version in enumerate(versions):
        if not version.get("name"):
            causes.append(required(f"spec.versions[{number}].name"))
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            causes.append(required(f"spec.versions[{number}].schema.openAPIV3Schema", "schemas are required"))
    if (spec.get("conversion") or {}).get("strategy") != "None":
        told = "the embedded cluster does not convert between versions"
        causes.append(wrong("spec.conversion.strategy", spec["conversion"].get("strategy", ""), told))
    expected = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if name != expected:
        causes.append(wrong("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    return causes


def check_definition_update(new: Object, old: Object) -> list[StatusCause]:
    """Return a cause for each changed field that must not change: group, scope and kind."""
    paths = (("spec.group", ("group",)), ("spec.scope", ("scope",)), ("spec.names.kind", ("names", "kind")))
    causes = []
    for path, parts in paths:
        before, after = old["spec"], new["spec"]
        for part in parts:
            before, after = before.get(part), (after or {}).get(part)
        if before != after:
            causes.append(wrong(path, after, "field is immutable"))
    return causes
