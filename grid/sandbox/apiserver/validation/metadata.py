"""Validation of `metadata`: names, labels, annotations, owners, finalizers."""

from collections.abc import Callable, Mapping

from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.names import (
    dns_label_problems,
    label_key_problems,
    label_value_problems,
    subdomain_problems,
)
from grid.sandbox.apiserver.status import StatusCause, required, wrong

_NAME_RULES: Mapping[str, Callable[[str], list[str]]] = {
    "namespaces": dns_label_problems,
    "services": dns_label_problems,
}
_MOST_ANNOTATION_BYTES = 256 * 1024
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def check_metadata(kind: ServedKind, obj: Object) -> list[StatusCause]:
    metadata = obj["metadata"]
    name = metadata.get("name") or ""
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    rule = _NAME_RULES.get(kind.resource, subdomain_problems)
    causes = [wrong("metadata.name", name, problem) for problem in rule(name)]
    causes += check_labels("metadata.labels", metadata.get("labels"))
    causes += _check_annotations(metadata.get("annotations") or {})
    causes += _check_owners(metadata.get("ownerReferences") or [])
    for number, finalizer in enumerate(metadata.get("finalizers") or []):
        causes += _check_finalizer(f"metadata.finalizers[{number}]", finalizer)
    return causes


def check_labels(path: str, labels: Mapping[str, str] | None) -> list[StatusCause]:
    causes: list[StatusCause] = []
    for key, value in sorted((labels or {}).items()):
        causes += [wrong(path, key, problem) for problem in label_key_problems(key)]
        causes += [wrong(path, value, problem) for problem in label_value_problems(value)]
    return causes


def _check_annotations(annotations: Mapping[str, str]) -> list[StatusCause]:
    path = "metadata.annotations"
    causes = [wrong(path, key, problem) for key in sorted(annotations) for problem in label_key_problems(key.lower())]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _MOST_ANNOTATION_BYTES:
        causes.append(
            StatusCause(path, "FieldValueTooLong", f"Too long: may not be more than {_MOST_ANNOTATION_BYTES} bytes")
        )
    return causes


def _check_owners(owners: list[Object]) -> list[StatusCause]:
    causes: list[StatusCause] = []
    for owner in owners:
        for field, problem in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ):
            if not owner.get(field):
                causes.append(wrong(f"metadata.ownerReferences.{field}", "", problem))
    controllers = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        problem = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        causes.append(wrong("metadata.ownerReferences", owners, problem))
    return causes


def _check_finalizer(path: str, finalizer: str) -> list[StatusCause]:
    causes = [wrong(path, finalizer, problem) for problem in label_key_problems(finalizer)]
    if not causes and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        causes.append(wrong(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified"))
    return causes
