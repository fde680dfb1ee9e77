"""The shape of the served kinds, field by field, from `schema.json`: for decoding, for strict validation, and for
merging.

A field is written as an expression: a scalar (`string`, `bool`, `int32`, `int64`, `double`, `bytes`, `quantity`,
`intstr`, `time`, `microtime`, `any`), a struct (`@PodSpec`), a map (`{}string`), a list (`[]string`), a list merged
by a key (`[name]@Container`), or a list that is a set (`[=]string`). A number after it is the field's number in the binary encoding,
"2.5" is field 5 of a message that is field 2. The names and types are Kubernetes' published API; a test compares
them with the official client's models.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from grid.core.regexes import Expression
from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.quantities import canonical_text
from grid.sandbox.apiserver.status import Failure, bad_request, go_type

_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TIME = Expression(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_NOT_BASE64 = Expression(r"[^A-Za-z0-9+/]")
_LAYOUTS = {"time": "2006-01-02T15:04:05Z07:00", "microtime": "2006-01-02T15:04:05.000000Z07:00"}
_EXPRESSION = Expression(r"(\[([^\]]*)\]|\{\})?(@?)(\w+)(?: ([\d.]+))?")
_GO_SCALARS = {
    "string": "string",
    "bool": "bool",
    "int32": "int32",
    "int64": "int64",
    "double": "float64",
    "bytes": "[]uint8",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct. `type` is the name of the struct or scalar; for lists and maps, that of the elements."""

    type: str
    is_struct: bool
    container: str = ""  # "", "list", "map"
    patch_key: str = ""  # the key by which strategic merge patch merges the list
    is_set: bool = False
    numbers: tuple[int, ...] = ()  # two where the encoding nests what JSON does not

    @classmethod
    def parse(cls, text: str) -> "Field":
        match = _EXPRESSION.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no field expression")
        wrapper, keys, at, name, number = match.groups()
        is_set = keys == "="
        container = "" if wrapper is None else "map" if wrapper == "{}" else "list"
        return cls(
            name,
            bool(at),
            container,
            "" if is_set else keys or "",
            is_set,
            tuple(int(part) for part in (number or "").split(".") if part),
        )

    @property
    def go_element(self) -> str:
        """Go's name for the type of one element."""
        return f"v1.{self.type}" if self.is_struct else _GO_SCALARS.get(self.type, self.type)

    @property
    def go_type(self) -> str:
        return {"": "", "list": "[]", "map": "map[string]"}[self.container] + self.go_element


@dataclass(frozen=True, slots=True)
class Schema:
    types: Mapping[str, Mapping[str, Field]]

    @classmethod
    def load(cls, path: Path) -> "Schema":
        raw = msgspec.json.decode(path.read_bytes())
        types = {
            name: {key: Field.parse(text) for key, text in fields.items()} for name, fields in raw["types"].items()
        }
        return cls(types)


SCHEMA = Schema.load(Path(__file__).with_name("schema.json"))


def conform(kind: ServedKind, obj: Object) -> list[str]:
    """Convert a decoded object in place to Go's form: drop unknown fields and nulls, make quantities canonical.

    Return the paths of the unknown fields; raise a 400 `Failure` for a value of the wrong type.
    """
    try:
        walker = _Walker()
        walker.struct(kind.kind, obj, "", "")
    except _Mismatch as problem:
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}'
        ) from None
    return walker.unknown


def strict_failure(kind: ServedKind, problems: list[str]) -> Failure:
    listed = ", ".join(problems)
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: {listed}'
    )


class _Mismatch(Exception):
    """A value does not fit its field; the message is Go's."""


class _Walker:
    """One walk over an object. `path` has indexes, for people; `go_path` has none, as in Go's messages."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def struct(self, name: str, obj: Object, path: str, go_path: str) -> None:
        fields = SCHEMA.types[name]
        for key in list(obj):
            known = fields.get(key)
            here = f"{path}.{key}" if path else key
            if known is None:
                self.unknown.append(here)
                del obj[key]
            elif obj[key] is None:
                # A null time means "not set" and is kept, except in metadata.
                if known.type not in ("time", "microtime") or name == "ObjectMeta":
                    del obj[key]
            else:
                obj[key] = self._value(known, obj[key], here, (name, f"{go_path}.{key}" if go_path else key))

    def _value(self, known: Field, value: Any, path: str, where: tuple[str, str]) -> Any:
        if known.container == "list":
            _expect(isinstance(value, list), value, where, known.go_type)
            return [self._one(known, each, f"{path}[{number}]", where) for number, each in enumerate(value)]
        if known.container == "map":
            _expect(isinstance(value, dict), value, where, known.go_type)
            return {key: self._one(known, each, f"{path}.{key}", where) for key, each in value.items()}
        return self._one(known, value, path, where)

    def _one(self, known: Field, value: Any, path: str, where: tuple[str, str]) -> Any:
        if known.is_struct:
            if value is None:
                return {}
            _expect(isinstance(value, dict), value, where, known.go_element)
            self.struct(known.type, value, path, where[1])
            return value
        return self._scalar(known, value, where)

    def _scalar(self, known: Field, value: Any, where: tuple[str, str]) -> Any:
        match known.type:
            case "string" | "bytes":
                if value is None and known.container:
                    return ""
                _expect(isinstance(value, str), value, where, known.go_element)
                if known.type == "bytes":
                    _check_base64(value)
            case "bool":
                _expect(isinstance(value, bool), value, where, known.go_element)
            case "int32" | "int64":
                _expect(isinstance(value, int) and not isinstance(value, bool), value, where, known.go_element)
            case "quantity":
                return _quantity(value)
            case "time" | "microtime":
                _check_time(known.type, value)
            case "intstr":
                _expect(isinstance(value, (int, str)) and not isinstance(value, bool), value, where, known.go_element)
        return value


def _expect(fits: bool, value: Any, where: tuple[str, str], go: str) -> None:
    if not fits:
        struct, path = where
        raise _Mismatch(f"json: cannot unmarshal {go_type(value)} into Go struct field {struct}.{path} of type {go}")


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _Mismatch(_QUANTITY_RULE)
    try:
        return canonical_text(str(value))
    except ValueError:
        raise _Mismatch(_QUANTITY_RULE) from None


def _check_base64(value: str) -> None:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error:
        bad = _NOT_BASE64.search(value.rstrip("="))
        raise _Mismatch(f"illegal base64 data at input byte {bad.start() if bad else len(value)}") from None


def _check_time(kind: str, value: Any) -> None:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        layout = _LAYOUTS[kind]
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        raise _Mismatch(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"')
