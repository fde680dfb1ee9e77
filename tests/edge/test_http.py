"""What a connection may do, tried with real sockets and short limits."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.edge.serving import PATIENT, SHORT, App, head, refusals, serving
from tests.support.waiting import eventually

Caplog = pytest.LogCaptureFixture


@pytest.mark.parametrize(
    "sent", ["G", "GET / HTTP/1.1\r\nHost: te", "\r\n", "GET / HTTP/1.1\r\nUpgrade: websocket\r\n"]
)
async def test_unfinished_head_is_answered_408_and_logged_once(sent: str, caplog: Caplog) -> None:
    async with serving(App(), limits=SHORT) as server:
        assert (await server.ask(sent)).startswith(b"HTTP/1.1 408 ")
    assert len(refusals(caplog.records)) == 1 and "reason=head-too-late" in caplog.text


async def test_a_head_that_grows_slowly_gets_no_more_time(caplog: Caplog) -> None:
    async with serving(App(), limits=SHORT) as server:
        client = await server.connect()
        client.send("GET /")
        answer = asyncio.create_task(client.rest())
        while not answer.done():
            client.send("x")
            await asyncio.wait([answer], timeout=SHORT.head_seconds / 5)
        assert answer.result().startswith(b"HTTP/1.1 408 ")
    assert len(refusals(caplog.records)) == 1


async def test_second_head_of_connection_has_a_limit_too(caplog: Caplog) -> None:
    async with serving(App(), limits=replace(PATIENT, head_seconds=2)) as server:
        client = await server.connect()
        client.send(head("GET", "/"))
        await client.until(b"0\r\n\r\n")
        client.send("GET / HT")
        assert (await client.rest()).startswith(b"HTTP/1.1 408 ")
    assert len(refusals(caplog.records)) == 1


@pytest.mark.parametrize(
    "sent",
    [head("POST", "/", "Content-Length: 100") + "half", head("POST", "/", "Transfer-Encoding: chunked") + "5\r\nhal"],
)
async def test_stalled_body_is_answered_408_and_application_learns(sent: str, caplog: Caplog) -> None:
    app = App()
    async with serving(app, limits=SHORT) as server:
        assert (await server.ask(sent)).startswith(b"HTTP/1.1 408 ")
        await eventually(lambda: app.ended == ["disconnect"])
    assert len(refusals(caplog.records)) == 1 and "reason=body-stopped" in caplog.text


async def test_a_slow_body_that_moves_is_taken() -> None:
    async with serving(App(), limits=replace(PATIENT, body_idle_seconds=1)) as server:
        client = await server.connect()
        client.send(head("POST", "/", "Connection: close", "Content-Length: 6"))
        for _ in range(6):  # longer than without a byte it may take
            client.send("x")
            await asyncio.sleep(0.25)
        assert b"6 bytes" in await client.rest()


async def test_body_after_its_answer_is_discarded_for_limited_time() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async with serving(app) as server:
        client = await server.connect()
        client.send(head("POST", "/", "Content-Length: 100000000"))
        assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 413 ")
        while not client.reader.at_eof() and client.reader.exception() is None:
            client.send(b"x" * 65536)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (head("GET", "/" + "a" * 9000), 414),
        (head("GET", "/", f"X: {'a' * 40000}"), 431),
        (head("GET", "/", *[f"X-{number}: a" for number in range(120)]), 431),
        ("GET / HTTP/1.1\r\nX: " + "a" * 400_000, 431),
        (head("POST", "/", "Transfer-Encoding: chunked") + "1\r\na\r\n0\r\nX: " + "a" * 400_000, 431),
        ("nonsense\r\n\r\n", 400),
        (head("GET", "/\x00"), 400),
        (head("POST", "/", "Content-Length: 5", "Transfer-Encoding: chunked"), 400),
        (head("POST", "/", "Content-Length: -5"), 400),
    ],
    ids=range(9),
)
async def test_oversized_or_malformed_heads_are_refused_and_logged_once(sent: str, status: int, caplog: Caplog) -> None:
    async with serving(App()) as server:
        answer = await server.ask(sent)
        assert (await server.get()).startswith(b"HTTP/1.1 200 ")
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:100]
    (line,) = refusals(caplog.records)
    assert len(line) < 500 and line.isprintable()


async def test_pipelined_requests_beyond_limit_are_refused(caplog: Caplog) -> None:
    async with serving(App()) as server:
        client = await server.connect()
        client.send(head("POST", "/", "Content-Length: 3") + "abc")
        client.send(head("GET", "/") * 3)
        for _ in range(4):
            assert b"200 OK" in await client.until(b"\r\n0\r\n\r\n")
        client.send(head("GET", "/") * 1000)
        await client.rest()
    assert len(refusals(caplog.records)) == 1 and "too-many-waiting" in caplog.text


async def test_stalled_reader_is_cut_and_application_learns(caplog: Caplog) -> None:
    app = App()
    async with serving(app, limits=SHORT) as server:
        client = await server.connect(buffer=4096)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send(head("GET", "/long"))
        await eventually(lambda: app.ended == ["disconnect"])
    assert len(refusals(caplog.records)) == 1 and "reason=answer-not-read" in caplog.text


async def test_single_address_cannot_take_all_connections(caplog: Caplog) -> None:
    limits = replace(PATIENT, connections_of_address=3)
    async with serving(App(), limits=limits) as server:
        held = [await server.connect(source="127.0.0.2") for _ in range(3)]
        for client in held:
            client.send("G")
        refused = await server.connect(source="127.0.0.2")
        answer = await refused.rest()
        assert answer.startswith(b"HTTP/1.1 503 ") and b"retry-after: 5" in answer
        assert (await server.get(source="127.0.0.3")).startswith(b"HTTP/1.1 200 ")
        held[0].writer.close()
        await held[0].writer.wait_closed()
        assert (await server.get(source="127.0.0.2")).startswith(b"HTTP/1.1 200 ")
    assert "client=127.0.0.2" in refusals(caplog.records)[0]


async def test_there_is_a_limit_of_all_connections() -> None:
    async with serving(App(), limits=replace(PATIENT, connections=3)) as server:
        for number in range(3):
            (await server.connect(source=f"127.0.0.{number + 2}")).send("G")
        refused = await server.connect(source="127.0.0.9")
        assert (await refused.rest()).startswith(b"HTTP/1.1 503 ")


async def test_a_proxy_in_front_is_no_single_client() -> None:
    limits = replace(PATIENT, connections_of_address=1)
    async with serving(App(), limits=limits, trusted_proxies=("127.0.0.2/31",)) as server:
        for _ in range(5):
            (await server.connect(source="127.0.0.2")).send("G")
        assert (await server.get(source="127.0.0.2")).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("forwarded", "source", "seen"),
    [
        ("192.0.2.7", "127.0.0.2", "192.0.2.7"),
        ("spoofed, 192.0.2.7, 127.0.0.3", "127.0.0.2", "192.0.2.7"),
        ("192.0.2.7", "127.0.0.9", "127.0.0.9"),
    ],
    ids=["by the proxy", "by two proxies", "by anybody"],
)
async def test_only_trusted_proxies_say_who_asks(forwarded: str, source: str, seen: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["client"][0].encode()})

    async with serving(app, trusted_proxies=("127.0.0.2/31",)) as server:
        answer = await server.ask(head("GET", "/", f"X-Forwarded-For: {forwarded}", "Connection: close"), source=source)
    assert seen.encode() in answer
