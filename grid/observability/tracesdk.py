"""Makes spans with OpenTelemetry's SDK and sends them, in a thread of their own, to the collector that its environment variables name."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from grid.observability.tracing import CLIENT, SERVER, Span, Value

_KINDS = {SERVER: trace.SpanKind.SERVER, CLIENT: trace.SpanKind.CLIENT}
_TIMEOUT = "OTEL_EXPORTER_OTLP_TIMEOUT"
_SECONDS = 3.0  # for one request to the collector: a process that ends waits for one
_Ids = tuple[int, int]  # of a trace and a span
_given: ContextVar[_Ids | None] = ContextVar("ids of the next span", default=None)


class _IdGenerator(RandomIdGenerator):
    def generate_trace_id(self) -> int:
        given = _given.get()
        return given[0] if given else super().generate_trace_id()

    def generate_span_id(self) -> int:
        given = _given.get()
        return given[1] if given else super().generate_span_id()


class _OpenSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def set(self, name: str, value: Value) -> None:
        self._span.set_attribute(name, value)
        if name == "http.response.status_code" and int(value) >= 500:
            self._span.set_status(trace.StatusCode.ERROR)


class OpenTelemetry:
    def __init__(self, process: str) -> None:
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": f"compute-grid-{process}"}
        exporter = OTLPSpanExporter(timeout=None if os.environ.get(_TIMEOUT) else _SECONDS)
        self._provider = TracerProvider(resource=Resource.create(named), id_generator=_IdGenerator())
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("compute-grid")

    @contextmanager
    def span(self, name: str, kind: str, attributes: Mapping[str, Value]) -> Iterator[Span]:
        # Messages of exceptions are left out: they may have addresses with tokens.
        with self._tracer.start_as_current_span(
            name, kind=_KINDS[kind], attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield _OpenSpan(span)
            except BaseException as error:
                span.set_status(trace.StatusCode.ERROR, type(error).__name__)
                raise

    @contextmanager
    def of_execution(self, execution_id: str) -> Iterator[None]:
        token = context.attach(_within(_ids_of(execution_id)))
        try:
            yield
        finally:
            context.detach(token)

    def started(
        self,
        execution_id: str,
        attributes: Mapping[str, Value],
        *,
        ended_at: datetime,
        phases: Sequence[tuple[str, float]],
        ran: bool,
    ) -> None:
        """Make the spans of what is over; that of the launch has the ids that `of_execution` has promised."""
        end = int(ended_at.timestamp() * 1e9)
        at = begin = end - round(sum(seconds for _, seconds in phases) * 1e9)
        ids = _ids_of(execution_id)
        token = _given.set(ids)
        try:
            whole = self._tracer.start_span("launch", context.Context(), attributes=attributes, start_time=begin)
        finally:
            _given.reset(token)
        for phase, seconds in phases:
            part = self._tracer.start_span(f"launch {phase}", _within(ids), attributes=attributes, start_time=at)
            at += round(seconds * 1e9)
            part.end(at)
        if not ran:
            whole.set_status(trace.StatusCode.ERROR)
        whole.end(end)

    def note(self, name: str, value: Value) -> None:
        trace.get_current_span().set_attribute(name, value)

    def close(self) -> None:
        self._provider.shutdown()


def _ids_of(execution_id: str) -> _Ids:
    """Return the ids of the launch: made from the execution's, so that every process knows them and nothing has to be stored."""
    digest = hashlib.sha256(f"compute-grid launch {execution_id}".encode()).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])


def _within(ids: _Ids) -> context.Context:
    parent = trace.SpanContext(*ids, is_remote=True, trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED))
    return trace.set_span_in_context(trace.NonRecordingSpan(parent), context.Context())
