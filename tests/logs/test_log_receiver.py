"""Lines of logs are posted to a real server that reads each payload as a collector does, and that fails in its ways."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from grid.logs.logplace import START, LogPlace
from grid.logs.logshipping.lines import LineReading, LineSource, LoggedLine, Portion
from grid.logs.logshipping.receiver import LogReceiver, ReceiverSettings, Verdict, encode, judge
from tests.support.http_server import Answer, Server, serving

NOW = datetime(2026, 2, 2, 10, tzinfo=UTC)
SECRET = "Bearer hush-hush-0815"
STAMP = "2026-02-02T09:59:59.123456789"
NANOSECONDS = "1770026399123456789"
TEXTS = ["one", 'sagt "ja" \\ – 漢', "\x1b[31mred\x1b[0m\t{}", ""]


def portion(execution: str = "abc", kind: str = "job", texts: list[str] | None = None) -> Portion:
    source = LineSource(execution, kind, "project-1", "alice", "compute-grid", f"{kind}-{execution}", "run")
    lines = tuple(LoggedLine(STAMP, text) for text in texts or TEXTS)
    return Portion(source, lines, LogPlace(STAMP[:19], len(lines), STAMP))


def lines_at(server: Server) -> list[tuple[str, str, str]]:
    """Return each line's execution, time and text, as OpenTelemetry's schema reads them: it refuses what it does not know."""
    logs = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    read = pytest.importorskip("google.protobuf.json_format").Parse
    lines = []
    for request, body in zip(server.seen, server.bodies, strict=True):
        assert (request.path, request.content_type) == ("/v1/logs", "application/json")
        for resource in read(body, logs.ExportLogsServiceRequest()).resource_logs:
            names = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
            assert names["service.name"] == "compute-grid"
            records = [record for scope in resource.scope_logs for record in scope.log_records]
            id = names["compute_grid.execution.id"]
            lines += [(id, str(record.time_unix_nano), record.body.string_value) for record in records]
    return lines


def answering(status: int, body: Any = None, **headers: str) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="" if body is None else json.dumps(body), headers=headers)

    return answer


async def posted(server: Server, *portions: Portion, seconds: float = 20.0) -> Any:
    settings = ReceiverSettings(f"{server.url}/", SECRET, "team")
    receiver = LogReceiver(settings, seconds=seconds)
    try:
        return await receiver.post(portions, NOW)
    finally:
        receiver.close()


async def test_receiver_gets_each_line_with_time_and_execution() -> None:
    async with serving(answering(200, {})) as server:
        verdict = await posted(server, portion(), portion("def", "cluster", ["two", "two"]))
    assert (verdict.result, verdict.refused) == ("sent", 0)
    expected = [("abc", NANOSECONDS, text) for text in TEXTS] + [("def", NANOSECONDS, "two")] * 2
    assert lines_at(server) == expected
    assert server.seen[0].headers["Authorization"] == SECRET
    assert server.seen[0].headers["X-Scope-OrgID"] == "team"


def test_program_bytes_cannot_break_out_of_their_line() -> None:
    written = [
        *(b"a\x00b", b"\xff\xfe", b"\xed\xa0\x80", "\u2028\x85\ud7ff".encode()),
        *(b'"}\r{"create":{}}\r', b"x" * 1_000_000, STAMP.encode() + b"Z mine"),
    ]
    log = b"".join(b"%sZ %s\n" % (STAMP.encode(), line) for line in written)
    reading = LineReading(START)
    for start in range(0, len(log), 4096):
        reading.feed(log[start : start + 4096])
    assert [line.text for line in reading.lines] == [
        *("a�b", "��", "���", "\u2028\x85\ud7ff", '"}\r{"create":{}}'),
        *("x" * 16384 + " … (cut)", f"{STAMP}Z mine"),
    ]
    whole = Portion(portion().source, (*reading.lines, LoggedLine(STAMP, "\ud800")), reading.place)
    body = encode([whole], NOW)
    assert b"\n" not in body
    records = json.loads(body)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert [record["body"]["stringValue"] for record in records[:-1]] == [line.text for line in reading.lines]


@pytest.mark.parametrize(
    ("status", "words"),
    [(429, "takes no more"), (401, "RECEIVER_AUTHORIZATION"), (404, "LOG_RECEIVER_URL"), (307, "redirects")],
)
async def test_retryable_answer_is_retried_after_requested_time(status: int, words: str) -> None:
    async with serving(answering(status, **{"Retry-After": "7", "Location": "http://127.0.0.1:1/"})) as server:
        verdict = await posted(server, portion())
    assert (verdict.result, verdict.wait, len(server.seen)) == ("again", 7.0, 1)
    assert words in verdict.why


async def test_refused_lines_are_dropped_and_reason_hides_credentials() -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return web.Response(status=400, text=f"entry too far behind\n{request.headers['Authorization']}")

    async with serving(echo) as server:
        verdict = await posted(server, portion())
    assert (verdict.result, verdict.refused) == ("sent", len(TEXTS))
    assert verdict.why == "400: entry too far behind (hidden)"


@pytest.mark.parametrize(("rejected", "refused"), [("9999", 3), (-5, 0), ("2", 2)])
def test_partially_accepted_lines_are_counted_as_refused(rejected: Any, refused: int) -> None:
    body = json.dumps({"partialSuccess": {"rejectedLogRecords": rejected, "errorMessage": "old"}}).encode()
    assert judge(200, body, "", lines=3) == Verdict("sent", refused, why="old" if refused else "")


async def test_oversized_request_is_sent_in_parts() -> None:
    async with serving(answering(204)) as server:  # aiohttp takes a mebibyte
        assert (await posted(server, portion(texts=["x" * 16000] * 80))).result == "smaller"


async def test_unusable_receiver_is_reported_in_words() -> None:
    async def hang_half_way(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "9"})
        await answer.prepare(request)
        await answer.write(b"{")
        await asyncio.sleep(60)
        return answer

    async with serving(hang_half_way) as server:
        assert (await posted(server, portion(), seconds=0.2)).why == "no answer within 0 s"
    assert "cannot be reached" in (await posted(server, portion())).why
    broken = LogReceiver(ReceiverSettings("https://loki", authorities="/nowhere"))
    assert "GRID_LOG_RECEIVER_AUTHORITIES" in (await broken.post([portion()], NOW)).why
    broken.close()
    credentials = Server(answering(200), url="http://169.254.169.254")
    assert "may not be called" in (await posted(credentials, portion())).why
    assert SECRET not in repr(ReceiverSettings("http://loki", SECRET))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{" * 9000, b'{"partialSuccess":7}', b'{"partialSuccess":{"rejectedLogRecords":1e999}}']
)
def test_unknown_success_body_is_a_success(body: bytes) -> None:
    assert judge(200, body, "", lines=3).result == "sent"
    assert judge(503, body, "Wed, 21 Oct 2026 07:28:00 GMT", lines=3).wait == 0.0
    assert judge(503, body, "99999999", lines=3).wait == 300.0
