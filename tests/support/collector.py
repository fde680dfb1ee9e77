"""A collector of traces that takes them as OpenTelemetry's does, over HTTP, and keeps them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from grid.observability import tracing

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """What was sent."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()

    async def take(self, request: web.Request) -> web.Response:
        service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
        for resource in service.ExportTraceServiceRequest.FromString(await request.read()).resource_spans:
            self.services |= {
                attribute.value.string_value
                for attribute in resource.resource.attributes
                if attribute.key == "service.name"
            }
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return web.Response(content_type="application/x-protobuf")

    async def all(self) -> "dict[str, Span]":
        """What was sent at the end, by name."""
        await asyncio.to_thread(tracing.end)
        return {span.name: span for span in self.spans}


@asynccontextmanager
async def collecting(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    """Trace as a web process does, to a collector on this machine; skip where the extra `otel` is not installed."""
    pytest.importorskip("opentelemetry.sdk")
    collector, app = Collector(), web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{runner.addresses[0][1]}")
    tracing.begin("web")
    try:
        yield collector
    finally:
        await asyncio.to_thread(tracing.end)
        await runner.cleanup()


def attributes(span: "Span") -> dict[str, str | int]:
    return {attribute.key: attribute.value.string_value or attribute.value.int_value for attribute in span.attributes}
