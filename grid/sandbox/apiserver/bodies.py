"""Decoding of request bodies and negotiation of answers: media types, and the errors for bytes that are not an object.

The error messages are those of the real server, which are Go's.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from grid.core.regexes import Expression
from grid.sandbox.apiserver import protobuf
from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.status import Failure, bad_request, go_type

JSON = "application/json"
_MOST_VALUES = 200_000
_BODY_TYPES = (JSON, "application/yaml", "application/vnd.kubernetes.protobuf")
_STREAMS = (f"{JSON};stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")


@dataclass(frozen=True, slots=True)
class Form:
    """The form in which a client wants the answer: whole objects, a table for people, or metadata only; JSON or YAML."""

    transform: str = ""  # "", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
    discovery: bool = False  # aggregated discovery
    yaml: bool = False


def negotiate(accept: str) -> Form:
    """Return the first form in an `Accept` header that the server can give. Raise a 406 `Failure` when there is none."""
    for entry in accept.split(",") if accept.strip() else ["*/*"]:
        media, *rest = (part.strip() for part in entry.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        wanted = parameters.get("as", "")
        if media in (JSON, "*/*", "application/*"):
            if parameters.get("g") == "apidiscovery.k8s.io":
                if parameters.get("v") == "v2":
                    return Form(discovery=True)
                continue
            if wanted and (parameters.get("g"), parameters.get("v")) != ("meta.k8s.io", "v1"):
                continue
            return Form(transform=wanted)
        if media in ("application/yaml", "text/yaml") and not wanted:
            return Form(yaml=True)
    offered = ", ".join((*_BODY_TYPES, *_STREAMS))
    raise Failure(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {offered}", {})


def decode_object(body: bytes, content_type: str, kind: ServedKind) -> Object:
    """Return the object in the body of a POST or PUT, with kind and version filled in and checked."""
    return named(parse_object(body, content_type, kind.kind), kind)


def parse_object(body: bytes, content_type: str, expected: str) -> Object:
    """Return the object in a body, whatever its kind. Raise `Failure` for an unknown media type or an unreadable body."""
    media = content_type.partition(";")[0].strip() or JSON
    obj: Any
    match media:
        case "application/json":
            obj = _decode_json(body, expected)
        case "application/yaml" | "text/yaml":
            obj = decode_yaml(body)
        case protobuf.MEDIA_TYPE:
            obj = _decode_protobuf(body)
        case _:
            raise _unknown_format()
    if not isinstance(obj, dict):
        raise _unrecognized(expected, f"json: cannot unmarshal {go_type(obj)} into Go value of type struct", body)
    return obj


def _unknown_format() -> Failure:
    accepted = ", ".join(_BODY_TYPES)
    problem = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return Failure(415, "UnsupportedMediaType", problem)


def _decode_protobuf(body: bytes) -> Object:
    try:
        return protobuf.decode(body)
    except protobuf.UnreadableProtobuf as problem:
        raise bad_request(f"the body of the request is not in the binary encoding: {problem}; send JSON") from problem


def named(obj: Object, kind: ServedKind) -> Object:
    """Return the object with `kind` and `apiVersion` first, as every stored object has them; refuse a wrong one."""
    given_kind, given_version = obj.get("kind") or kind.kind, obj.get("apiVersion") or kind.api_version
    if given_kind != kind.kind:
        text = f"converting ({_go_version(given_version)}.{given_kind}) to ({_go_package(kind)}.{kind.kind}): unknown conversion"
        raise bad_request(
            f'{given_kind} in version "{_version(given_version)}" cannot be handled as a {kind.kind}: {text}'
        )
    if given_version != kind.api_version:
        raise bad_request(
            f'{kind.kind} in version "{_version(given_version)}" cannot be handled as a {kind.kind}: no kind "{kind.kind}" '
            f'is registered for version "{given_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if not isinstance(obj.get("metadata"), (dict, type(None))):
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: json: cannot unmarshal '
            f"{go_type(obj['metadata'])} into Go struct field {kind.kind}.metadata of type v1.ObjectMeta"
        )
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": obj.get("metadata") or {}, **rest}


def _version(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def _go_version(api_version: str) -> str:
    return _version(api_version)


def _go_package(kind: ServedKind) -> str:
    return kind.group.partition(".")[0] or "core"


def _decode_json(body: bytes, expected: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _unrecognized(
            expected, f"couldn't get version/kind; json parse error: {json_error(body)}", body
        ) from None


def decode_yaml(body: bytes) -> Any:
    """Read YAML the way Kubernetes does: one document, in which dates stay text."""
    try:
        loaded = yaml.load(body, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as problem:
        raise bad_request(f"error converting YAML to JSON: {problem}") from problem
    _check_size(loaded)
    return loaded


def _check_size(loaded: Any) -> None:
    """Refuse a document that aliases make enormous or endless: no honest object has so many values."""
    pending, seen = [loaded], 0
    while pending:
        value = pending.pop()
        seen += 1
        if seen > _MOST_VALUES:
            raise bad_request("error converting YAML to JSON: yaml: document contains excessive aliasing")
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value


class _Loader(yaml.SafeLoader):
    """A YAML loader that leaves timestamps as strings, which they are in Kubernetes."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _unrecognized(expected: str, problem: str, body: bytes) -> Failure:
    text = body.decode("utf-8", "replace")
    return bad_request(
        f"the object provided is unrecognized (must be of type {expected}): {problem} ({text[:1000] or '<empty>'})"
    )


_AFTER = {
    "Expecting property name": "looking for beginning of object key string",
    "Expecting ':'": "after object key",
    "Expecting ','": "after object key:value pair",
    "Expecting value": "looking for beginning of value",
}


def json_error(body: bytes) -> str:
    """Return what Go's decoder says about bytes that are not JSON."""
    text = body.decode("utf-8", "replace")
    try:
        json.loads(text)
    except RecursionError:
        return "exceeded max depth"
    except json.JSONDecodeError as problem:
        rest = text[problem.pos :].lstrip()
        if not rest:
            return "unexpected end of JSON input"
        for start, place in _AFTER.items():
            if problem.msg.startswith(start):
                return f"invalid character {_quoted(rest[0])} {place}"
        return f"invalid character {_quoted(rest[0])} after top-level value"
    return "invalid UTF-8"


def _quoted(character: str) -> str:
    return "'\\''" if character == "'" else f"'{character}'"


def duplicate_fields(body: bytes) -> list[str]:
    """Return the paths of object keys that occur twice in JSON; parsers silently keep the last one."""
    duplicates: list[str] = []

    def walk(value: Any, path: str) -> None:
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, inner in value.pairs:
                here = f"{path}.{key}" if path else key
                if key in seen:
                    duplicates.append(here)
                seen.add(key)
                walk(inner, here)
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                walk(inner, f"{path}[{number}]")

    walk(json.loads(body, object_pairs_hook=_Pairs), "")
    return duplicates


class _Pairs:
    """An object's keys and values in their order, duplicates included."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


_NUMBER = Expression(r"[+-]?\d{1,18}")


def parse_int(text: str) -> int:
    """Return a number in a query. Raise a 400 `Failure` in Go's words for what is not a number."""
    if not _NUMBER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def parse_bool(query: Mapping[str, str], name: str) -> bool:
    """Return a switch in a query as Kubernetes reads it: on when it is present, unless it says "0" or "false" in any case."""
    return name in query and query[name].lower() not in ("0", "false")
