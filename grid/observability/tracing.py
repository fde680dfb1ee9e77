"""Traces by OpenTelemetry, for one request or launch at a time; off unless its own environment variables name a collector.

The SDK, an extra (`otel`), is imported only then (`grid.observability.tracesdk`). While it is off, a span costs a call and nothing else.
"""

import logging
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from grid.observability.tracesdk import OpenTelemetry

log = logging.getLogger(__name__)

# https://opentelemetry.io/docs/specs/otel/protocol/exporter/
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
SERVER, CLIENT = "server", "client"
EXECUTION = "compute_grid.execution.id"
Value = str | int | float | bool


class Span(Protocol):
    """A span that has begun; leaving it ends it."""

    def rename(self, name: str) -> None: ...

    def set(self, name: str, value: Value) -> None: ...


class _NoSpan:
    def rename(self, name: str) -> None:
        pass

    def set(self, name: str, value: Value) -> None:
        pass


_NOTHING: AbstractContextManager[None] = nullcontext()
_NO_SPAN: AbstractContextManager[Span] = nullcontext(_NoSpan())
_current: list["OpenTelemetry"] = []


def begin(process: str) -> None:
    """Trace from now on what this process does, if a collector is named; `process` is "web", "proxy" or "controller"."""
    if _current or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or not any(map(os.environ.get, ENDPOINTS)):
        return
    # Not before, because the SDK takes a quarter of a second to import and most installations have no collector.
    try:
        sdk = import_module("grid.observability.tracesdk")
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        log.error("there are no traces although a collector is named: install the packages of requirements-otel.lock")
        return
    _current.append(sdk.OpenTelemetry(process))


def end() -> None:
    """Send what has not been sent, and trace no more. It may take seconds where the collector does not answer."""
    while _current:
        _current.pop().close()


def span(name: str, kind: str, **attributes: Value) -> AbstractContextManager[Span]:
    """Return a span around what follows; in names of attributes, `__` stands for a dot."""
    if not _current:
        return _NO_SPAN
    return _current[0].span(name, kind, {key.replace("__", "."): value for key, value in attributes.items()})


def of_execution(execution_id: str) -> AbstractContextManager[None]:
    """Have the spans within belong to the trace of the execution's launch, in whichever process."""
    return _current[0].of_execution(execution_id) if _current else _NOTHING


def started(
    execution_id: str, kind: str, *, ended_at: datetime, phases: Sequence[tuple[str, float]], ran: bool
) -> None:
    """Tell the start of an execution that has come to its end: from the launch through the phases, in seconds and one after the other."""
    if _current:
        attributes: dict[str, Value] = {EXECUTION: execution_id, "compute_grid.execution.kind": kind}
        _current[0].started(execution_id, attributes, ended_at=ended_at, phases=phases, ran=ran)


def note(name: str, value: Value) -> None:
    if _current:
        _current[0].note(name, value)
