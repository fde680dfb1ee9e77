"""PUT and PATCH: from a request's body to the function that the registry applies to the object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from grid.sandbox.apiserver.bodies import JSON, decode_object, duplicate_fields, json_error, named
from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.patches import NoMergeKey, merge_patch, strategic_merge
from grid.sandbox.apiserver.registry import Mutation
from grid.sandbox.apiserver.schema import conform, strict_failure
from grid.sandbox.apiserver.status import Failure, bad_request, go_type, invalid_options, server_error, unsupported

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(slots=True)
class FieldValidation:
    """How unknown and duplicate fields are treated: refused, reported as warnings, or ignored."""

    kind: ServedKind
    level: str = "Warn"
    warnings: list[str] = field(default_factory=list)

    def check(self, obj: Object, doubles: Sequence[str] = ()) -> Object:
        problems = [f'duplicate field "{path}"' for path in doubles]
        problems += [f'unknown field "{path}"' for path in conform(self.kind, obj)]
        if problems and self.level == "Strict":
            raise strict_failure(self.kind, problems)
        if self.level == "Warn":
            self.warnings += problems
        return obj


def decode_new(body: bytes, content_type: str, validation: FieldValidation) -> Object:
    """Return the object of a POST or PUT as it is to be stored."""
    obj = decode_object(body, content_type, validation.kind)
    is_json = content_type.partition(";")[0].strip() in ("", JSON)
    doubles = duplicate_fields(body) if is_json and validation.level == "Strict" else []
    return validation.check(obj, doubles)


def replacement(body: bytes, content_type: str, validation: FieldValidation) -> Mutation:
    given = decode_new(body, content_type, validation)
    return lambda old: given


def validated(mutation: Mutation, validation: FieldValidation) -> Mutation:
    """Return the mutation with its result decoded and checked like any other object."""
    kind = validation.kind
    return lambda old: validation.check(named(mutation(old), kind))


def patching(body: bytes, content_type: str, type_name: str) -> Mutation:
    """Return the mutation for a patch."""
    media = content_type.partition(";")[0].strip()
    if media not in (MERGE, STRATEGIC):
        raise Failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    patch = _decode(body)
    if not isinstance(patch, dict):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {go_type(patch)} into Go value of type map[string]interface {{}}"
        )
    if media == MERGE:
        return lambda old: _checked(merge_patch(old, patch))
    return lambda old: _checked(_strategic(old, patch, type_name))


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request(f"error decoding patch: {json_error(body)}") from None


def _strategic(old: Object, patch: Object, type_name: str) -> Any:
    try:
        return strategic_merge(old, patch, type_name)
    except NoMergeKey as problem:
        raise server_error(str(problem)) from problem


def _checked(obj: Any) -> Object:
    """Raise `Failure` if a patch broke the object's frame; what is inside the object is validated later."""
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        raise bad_request("the patch leaves an object without metadata")
    return obj


def is_dry_run(options: str, query: Mapping[str, str]) -> bool:
    """Return True when nothing is to be stored; raise `Failure` for invalid options of a change."""
    dry = query.get("dryRun", "")
    if dry not in ("", "All"):
        raise invalid_options(options, unsupported_list("dryRun", dry))
    validation = query.get("fieldValidation", "")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        raise invalid_options(options, unsupported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    return dry == "All"


def unsupported_list(path: str, value: str) -> Any:
    return unsupported(path, [value], ("All",))
