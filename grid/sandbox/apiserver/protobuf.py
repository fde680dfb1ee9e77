"""Objects in Kubernetes' binary encoding, as kubectl sends them for some commands. Decoding only: answers are
always JSON.

The encoding is protocol buffers; the fields' numbers are in the schema. A field with a number that the schema does
not know makes the whole body unreadable, because dropping it silently would store another object than was sent.
"""

import base64
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.schema import SCHEMA, Field

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_ZERO_IS_ABSENT = frozenset(
    {
        *("stdin", "stdinOnce", "tty", "hostNetwork", "hostPID", "hostIPC", "paused", "readOnly", "generation"),
        *("minReadySeconds", "hostPort", "nodePort", "publishNotReadyAddresses", "initialDelaySeconds"),
    }
)

# Bytes that do not match the schema can raise any of these while they are decoded.
_GARBLED = (LookupError, ValueError, TypeError, AttributeError, OverflowError, OSError, struct.error)


class UnreadableProtobuf(Exception):
    """The bytes are not an object in this encoding, or have fields that the schema does not know."""


def decode(body: bytes) -> Object:
    """Return the object in an envelope, with its kind and version."""
    if not body.startswith(_MAGIC):
        raise UnreadableProtobuf("the envelope is missing")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        about = dict(_fields(envelope[1]))
        kind = about[2].decode()
        return {"kind": kind, "apiVersion": about[1].decode(), **_message(envelope.get(2, b""), kind)}
    except _GARBLED as problem:
        raise UnreadableProtobuf(f"it is cut off or garbled: {problem!r}") from problem


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and raw value of each field in order; repeated fields come repeatedly."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        value: Any
        if wire == _VARINT:
            value, position = _varint(data, position)
        elif wire == _BYTES:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise IndexError("a field is longer than its message")
            value, position = data[position : position + length], position + length
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
            value, position = data[position : position + size], position + size
        else:
            raise KeyError(f"wire type {wire}")
        yield number, value


@cache
def _numbers(type_name: str) -> tuple[Mapping[int, tuple[str, Field]], Mapping[int, Mapping[int, tuple[str, Field]]]]:
    """Return a type's fields by number, and those of messages that JSON shows as part of the type itself."""
    direct: dict[int, tuple[str, Field]] = {}
    inlined: dict[int, dict[int, tuple[str, Field]]] = {}
    for key, field in SCHEMA.types[type_name].items():
        if len(field.numbers) == 1:
            direct[field.numbers[0]] = (key, field)
        elif field.numbers:
            inlined.setdefault(field.numbers[0], {})[field.numbers[1]] = (key, field)
    return direct, inlined


def _message(data: bytes, type_name: str) -> Object:
    if type_name not in SCHEMA.types:
        raise KeyError(type_name)
    direct, inlined = _numbers(type_name)
    result: Object = {}
    for number, value in _fields(data):
        if number in inlined:
            for inner, inner_value in _fields(value):
                _take(result, *inlined[number][inner], inner_value)
        else:
            _take(result, *direct[number], value)
    return result


def _take(result: Object, key: str, field: Field, raw: Any) -> None:
    if field.container == "list":
        result.setdefault(key, []).append(_value(field, raw))
    elif field.container == "map":
        entry = dict(_fields(raw))
        name = entry.get(1, b"").decode()
        result.setdefault(key, {})[name] = _value(field, entry.get(2, b""))
    else:
        value = _value(field, raw)
        # Go encodes empty values of fields that are not pointers; JSON leaves them out.
        if value in ("", None) or (not value and key in _ZERO_IS_ABSENT):
            return
        result[key] = value


def _value(field: Field, raw: Any) -> Any:
    if field.is_struct:
        return _message(raw, field.type)
    match field.type:
        case "string":
            return raw.decode()
        case "bytes":
            return base64.b64encode(raw).decode()
        case "bool":
            return bool(raw)
        case "int32" | "int64":
            return raw - (1 << 64) if raw >= 1 << 63 else raw
        case "double":
            return struct.unpack("<d", raw)[0]
        case "quantity":
            return dict(_fields(raw)).get(1, b"0").decode() or "0"
        case "time" | "microtime":
            return _time(dict(_fields(raw)), field.type)
        case "intstr":
            parts = dict(_fields(raw))
            return parts.get(3, b"").decode() if parts.get(1) else _value(_INT, parts.get(2, 0))
        case _:
            return msgspec.json.decode(dict(_fields(raw)).get(1, b"null"))


_INT = Field("int32", is_struct=False)


def _time(parts: Mapping[int, int], kind: str) -> str | None:
    seconds = _value(_INT, parts.get(1, 0))
    if not parts or seconds < 0:  # Go's zero time
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    if kind == "time":
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return moment.replace(microsecond=parts.get(2, 0) // 1000).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
