"""What the proxy counts of what it answered, and its traces as a collector gets them: a real one, of which only storing is left out."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from dashboard.proxy.answers import explain
from dashboard.proxy.measured import MeasuredProxy, answered_by_program
from dashboard.shell.middleware import measured
from grid.observability import tracing
from grid.observability.telemetry import OTHER, REGISTRY
from tests.proxy.support import COOKIE, ORIGIN
from tests.support.collector import Collector, attributes, collecting

SERVER, ERROR = 2, 2  # the numbers of a span's kind and of a status
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    async with collecting(monkeypatch) as collector:
        yield collector


async def test_request_span_is_named_by_route_and_contains_children(collector: Collector) -> None:
    async def view(request: HttpRequest) -> HttpResponse:
        with tracing.span("GET", tracing.CLIENT, url__path="/api/v1/pods") as span:
            span.set("http.response.status_code", 200)
        tracing.note(tracing.EXECUTION, "abc")
        return HttpResponse(status=503)

    measure: Any = measured(view)
    await measure(RequestFactory().get("/secret-path/?token=secret"))
    spans = await collector.all()
    outer, inner = spans["GET other"], spans["GET"]
    assert attributes(outer) == {"http.route": "other", "http.response.status_code": 503, tracing.EXECUTION: "abc"}
    assert (outer.kind, outer.status.code) == (SERVER, ERROR)
    assert attributes(inner) == {"url.path": "/api/v1/pods", "http.response.status_code": 200}
    assert (inner.trace_id, inner.parent_span_id) == (outer.trace_id, outer.span_id)
    assert collector.services == {"compute-grid-web"}
    assert not any(b"secret" in span.SerializeToString() for span in collector.spans)


async def test_launch_is_a_single_trace_across_processes(collector: Collector) -> None:
    with tracing.of_execution("abc"), tracing.span("POST", tracing.CLIENT):
        pass
    phases = [("queued", 2.0), ("creating", 0.5), ("pulling+setup", 7.5)]
    tracing.started("abc", "workspace", ended_at=NOW, phases=phases, ran=True)
    spans = await collector.all()
    whole = spans["launch"]
    assert not whole.parent_span_id
    parts = [spans[name] for name in ("POST", "launch queued", "launch creating", "launch pulling+setup")]
    assert {(span.trace_id, span.parent_span_id) for span in parts} == {(whole.trace_id, whole.span_id)}
    begin = int((NOW - timedelta(seconds=10)).timestamp()) * 10**9
    times = [((span.start_time_unix_nano - begin) / 1e9, (span.end_time_unix_nano - begin) / 1e9) for span in parts[1:]]
    assert times == [(0, 2), (2, 2.5), (2.5, 10)]
    assert (whole.start_time_unix_nano, whole.end_time_unix_nano) == (begin, begin + 10 * 10**9)
    assert attributes(whole) == {tracing.EXECUTION: "abc", "compute_grid.execution.kind": "workspace"}


async def test_program_request_is_a_span_without_its_path(collector: Collector, browser: aiohttp.ClientSession) -> None:
    async with browser.get("/private/notes?token=secret", headers=COOKIE) as answer:
        status = answer.status
    async with browser.ws_connect("/ws?token=secret", headers=COOKIE, origin=ORIGIN):
        pass
    spans = await collector.all()
    values = attributes(spans["GET"])
    assert str(values.pop("server.address")).startswith("127.0.0.1:")
    assert values == {"http.response.status_code": status}
    assert "websocket" in spans
    assert not any(b"secret" in span.SerializeToString() for span in collector.spans)


async def test_failed_span_hides_its_message(collector: Collector) -> None:
    with pytest.raises(ValueError, match="secret"), tracing.span("GET", tracing.CLIENT):
        raise ValueError("secret")
    span = (await collector.all())["GET"]
    assert (span.status.code, span.status.message) == (ERROR, "ValueError")
    assert b"secret" not in span.SerializeToString()


def counted(code: str) -> float:
    return REGISTRY.get_sample_value("compute_grid_proxy_request_seconds_count", {"code": code}) or 0.0


async def nothing() -> Any:
    raise AssertionError("nothing is read")


async def ignored(message: Any) -> None:
    pass


async def answer(status: int, *, by_program: bool = False, type: str = "http") -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        if by_program:
            answered_by_program(scope)
        if type == "http":
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await explain(scope, send, status, "No.")  # type: ignore[arg-type]

    await MeasuredProxy(application)({"type": type, "path": "/"}, nothing, ignored)


@pytest.mark.parametrize(
    ("status", "options", "code"),
    [
        (200, {"by_program": True}, "200"),
        (502, {}, "502"),
        (503, {"by_program": True}, "500"),  # the program is there and has an error of its own
        (599, {"by_program": True}, OTHER),
        (502, {"type": "websocket"}, "502"),  # the browser sees 403 for any refusal
    ],
)
async def test_answer_is_counted_once_by_code_and_origin(status: int, options: dict[str, Any], code: str) -> None:
    before = counted(code)
    await answer(status, **options)
    assert counted(code) == before + 1
