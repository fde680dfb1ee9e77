"""Failures as Kubernetes reports them: a `Status` object with code, reason, message and causes.

Everything below the HTTP layer raises `Failure`; the server turns it into the answer. The messages are the real API
server's, word for word, because clients (and people who search for them) know those.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from grid.database.trouble import DatabaseTrouble, trouble_of
from grid.sandbox.apiserver.kinds import Object, ServedKind


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One problem of a field, in Kubernetes' words."""

    field: str
    reason: str
    message: str


class Failure(Exception):
    """An answer other than success."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None, **extra: Any) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after: int | None = extra.get("retry_after")
        self.continue_token: str = extra.get("continue_token", "")

    def body(self) -> Object:
        body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        if self.continue_token:
            body["metadata"] = {"continue": self.continue_token}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def success(code: int | None = None, details: Object | None = None) -> Object:
    body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        body["details"] = details
    if code is not None:
        body["code"] = code
    return body


def details_of(kind: ServedKind, name: str = "") -> Object:
    details: Object = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    return {**details, "kind": kind.plural}


def not_found(kind: ServedKind, name: str) -> Failure:
    return Failure(404, "NotFound", f'{kind.resource} "{name}" not found', details_of(kind, name))


def no_such_path() -> Failure:
    return Failure(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: ServedKind, name: str) -> Failure:
    return Failure(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', details_of(kind, name))


def conflict(kind: ServedKind, name: str, problem: str) -> Failure:
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {problem}'
    return Failure(409, "Conflict", message, details_of(kind, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def bad_request(message: str) -> Failure:
    return Failure(400, "BadRequest", message)


def server_error(message: str) -> Failure:
    return Failure(500, "", message)


def not_stored(path: Path | None, problem: sqlite3.Error) -> Failure:
    """Return the failure for a full or unwritable disk, like that of a full etcd."""
    if trouble_of(problem) is DatabaseTrouble.FULL:
        message = f"the disk of {path} is full, nothing was saved: make room there"
    else:
        message = f"{path} cannot be written, nothing was saved: {problem}"
    return Failure(500, "InternalError", f"Internal error occurred: {message}", {})


def forbidden(kind: ServedKind, name: str, problem: str, causes: Sequence[StatusCause] = ()) -> Failure:
    details = details_of(kind, name)
    if causes:
        details["causes"] = [_cause(cause) for cause in causes]
    who = f'{kind.resource} "{name}"' if name else kind.resource
    return Failure(403, "Forbidden", f"{who} is forbidden: {problem}", details)


def not_allowed() -> Failure:
    return Failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def expired(message: str, continue_token: str = "") -> Failure:
    return Failure(410, "Expired", message, continue_token=continue_token)


def too_large_version(asked: int, current: int) -> Failure:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Failure(504, "Timeout", message, details, retry_after=1)


def invalid(kind: str, group: str, name: str, causes: Sequence[StatusCause]) -> Failure:
    """Return a 422 with every cause; equal messages appear once, as on the real server."""
    messages = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    text = messages[0] if len(messages) == 1 else "[" + ", ".join(messages) + "]"
    qualified = f"{kind}.{group}" if group else kind
    details: Object = {"name": name} if name else {}
    if group:
        details["group"] = group
    details |= {"kind": kind, "causes": [_cause(cause) for cause in causes]}
    return Failure(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', details)


def invalid_options(kind: str, cause: StatusCause) -> Failure:
    return invalid(kind, "meta.k8s.io", "", [cause])


def _cause(cause: StatusCause) -> Object:
    return {"reason": cause.reason, "message": cause.message, "field": cause.field}


def shown(value: Any) -> str:
    """Return a value as the real server prints it inside a message."""
    return msgspec.json.encode(value).decode()


def wrong(path: str, value: Any, detail: str) -> StatusCause:
    return StatusCause(path, "FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def required(path: str, detail: str = "") -> StatusCause:
    return StatusCause(path, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def unsupported(path: str, value: Any, allowed: Sequence[str]) -> StatusCause:
    choices = ", ".join(shown(choice) for choice in allowed)
    return StatusCause(
        path, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {choices}"
    )


def duplicate(path: str, value: Any) -> StatusCause:
    return StatusCause(path, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def prohibited(path: str, detail: str) -> StatusCause:
    return StatusCause(path, "FieldValueForbidden", f"Forbidden: {detail}")


def missing(path: str, value: Any) -> StatusCause:
    return StatusCause(path, "FieldValueNotFound", f"Not found: {shown(value)}")


def go_type(value: Any) -> str:
    """Return Go's name for the type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
