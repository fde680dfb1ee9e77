"""What a connection and a websocket may do, tried with real sockets, short limits, and frames made by hand."""

import asyncio
import struct
import tracemalloc
import zlib
from dataclasses import replace
from typing import Any

import pytest

from tests.edge.serving import PATIENT, SHORT, UPGRADE, App, Client, Serving, head, refusals, serving
from tests.support.waiting import eventually

Caplog = pytest.LogCaptureFixture
CONTINUATION, TEXT, BINARY, CLOSE, PING = 0, 1, 2, 8, 9
COMPRESSED = 0x40
LARGE = 32 * 2**20  # more than the kernel keeps for both ends


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


def frame(opcode: int, data: bytes = b"", *, fin: bool = True, flags: int = 0, length: int | None = None) -> bytes:
    """As a browser sends it, masked with zeros; `length` is what it claims to have."""
    size = len(data) if length is None else length
    if size < 126:
        head = bytes([0x80 | size])
    elif size < 65536:
        head = b"\xfe" + struct.pack("!H", size)
    else:
        head = b"\xff" + struct.pack("!Q", size)
    return bytes([opcode | flags | (0x80 if fin else 0)]) + head + bytes(4) + data


async def connected(server: Serving, *headers: str, buffer: int | None = None) -> Client:
    client = await server.connect(buffer=buffer)
    client.send(head("GET", "/live", *UPGRADE, *headers))
    assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return client


def close_code(answer: bytes) -> int:
    assert answer[0] == 0x80 | CLOSE, answer
    return int.from_bytes(answer[2:4], "big")


async def test_fragments_cost_no_more_than_what_is_in_them() -> None:
    """Empty ones are no part of a message's size, so there may be any number."""
    app = App()
    async with serving(app) as server:
        client = await connected(server)
        client.send(frame(TEXT, b"hel", fin=False))
        tracemalloc.start()
        try:
            for _ in range(4):
                client.send(frame(CONTINUATION, fin=False) * 5000)
                await client.writer.drain()
            client.send(frame(PING))
            assert await client.until(b"\x8a\x00")
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert kept < 2**20
        client.send(frame(CONTINUATION, b"l", fin=False) + frame(CONTINUATION, b"o"))
        await eventually(lambda: len(app.received) == 1)
    assert app.received[0]["text"] == "hello"


async def test_half_sent_messages_have_a_limit_all_together(caplog: Caplog) -> None:
    app = App()
    async with serving(app, limits=replace(PATIENT, arriving_bytes=5000)) as server:
        clients = [await connected(server) for _ in range(3)]
        for client in clients[:2]:
            client.send(frame(BINARY, bytes(2400), length=3000))
        clients[2].send(frame(BINARY, bytes(2400), length=3000))
        assert await clients[2].rest() == b""
        clients[0].send(bytes(600))
        await eventually(lambda: len(app.received) == 1)
        another = await connected(server)
        another.send(frame(BINARY, bytes(2400)))
        await eventually(lambda: len(app.received) == 2)
    assert [line.partition(" reason=")[2].partition(" ")[0] for line in refusals(caplog.records)] == [
        "messages-half-sent"
    ]


MALFORMED = {
    "large": (frame(TEXT, length=64 * 2**20), 1009),
    "large in fragments": (frame(TEXT, b"a" * 3000, fin=False) + frame(CONTINUATION, length=3000), 1009),
    "no text": (frame(TEXT, b"\xff\xfe"), 1007),
    "reserved": (frame(3), 1002),
    "not masked": (b"\x81\x05hello", 1002),
}


@pytest.mark.parametrize(("sent", "code"), MALFORMED.values(), ids=MALFORMED)
async def test_malformed_message_closes_websocket_and_is_logged_once(sent: bytes, code: int, caplog: Caplog) -> None:
    app = App()
    async with serving(app) as server:
        client = await connected(server)
        client.send(sent)
        assert close_code(await client.rest()) == code
        await eventually(lambda: len(app.ended) == 1)
    assert app.received == []
    (line,) = refusals(caplog.records)
    assert "reason=malformed asked=websocket /live" in line and len(line) < 400


async def test_compressed_bomb_is_refused(caplog: Caplog) -> None:
    packed = zlib.compressobj(wbits=-12)
    bomb = packed.compress(bytes(64 * 2**20)) + packed.flush(zlib.Z_SYNC_FLUSH)
    app = App()
    async with serving(app, message_bytes=2**20) as server:
        client = await connected(server, "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=12")
        client.send(frame(BINARY, bomb[:-4], flags=COMPRESSED))
        assert close_code(await client.rest()) == 1009
    assert len(bomb) < 2**20 and app.received == [] and len(refusals(caplog.records)) == 1


INVALID = {
    "POST": (head("POST", "/live", *UPGRADE), 405),
    "no key": (head("GET", "/live", *UPGRADE[:3]), 400),
    "odd key": (head("GET", "/live", *UPGRADE[:3], "Sec-WebSocket-Key: short"), 400),
    "long path": (head("GET", "/live?" + "a" * 9000, *UPGRADE), 414),
    "longer than it reads": (head("GET", "/live?" + "a" * 8185, *UPGRADE), 400),
    "long header": (head("GET", "/live", *UPGRADE, "X: " + "a" * 9000), 400),
    "with a body": (head("GET", "/live", *UPGRADE, "Content-Length: 5") + "hello", 400),
    "HTTP/1.0": (head("GET", "/live", *UPGRADE).replace("HTTP/1.1", "HTTP/1.0"), 505),
}


@pytest.mark.parametrize(("sent", "status"), INVALID.values(), ids=INVALID)
async def test_invalid_websocket_request_is_answered_and_logged_once(sent: str, status: int, caplog: Caplog) -> None:
    async with serving(App()) as server:
        answer = await server.ask(sent)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:60]
    (line,) = refusals(caplog.records)
    assert f"status={status} " in line


async def test_data_before_websocket_is_accepted_ends_it(caplog: Caplog) -> None:
    asked = asyncio.Event()

    may_accept = asyncio.Event()

    async def accepts() -> None:
        asked.set()
        await may_accept.wait()

    app = App(accepts=accepts)
    async with serving(app) as server:
        client = await server.connect()
        client.send(head("GET", "/live", *UPGRADE))
        await asked.wait()
        client.send(frame(3) + frame(PING))
        assert await client.rest() == b""
        may_accept.set()
    assert "reason=too-early" in refusals(caplog.records)[0]


async def test_a_client_that_pings_and_never_reads_is_cut(caplog: Caplog) -> None:
    app = App()
    async with serving(app, limits=SHORT) as server:
        client = await connected(server, buffer=4096)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        pings = frame(PING, b"a" * 125) * 1000
        while not app.ended:
            client.send(pings)
            await asyncio.sleep(0.001)
    assert [line for line in refusals(caplog.records) if "reason=messages-not-read" in line]


async def talkative(scope: Any, receive: Any, send: Any) -> None:
    """Sends a large message at once, and after a message of the client's a last one."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "bytes": bytes(LARGE)})
    if (await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": "still here"})
        await receive()


async def test_slow_reader_of_large_message_is_not_gone() -> None:
    """It answers no ping here, so once it reads again it has twice the time of a ping until it is taken for gone."""
    async with serving(talkative, ping_seconds=1.5) as server:
        client = await connected(server)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(3.5)  # longer than until a ping and its answer
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert (await client.reader.readexactly(10))[0] == 0x80 | BINARY
        assert await client.reader.readexactly(LARGE) == bytes(LARGE)
        client.send(frame(TEXT, b"and now"))
        await client.until(b"still here")


async def test_application_sending_to_gone_client_gets_an_error() -> None:
    ended: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def ticking(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        try:
            while True:
                await send({"type": "websocket.send", "text": "tick"})
                await asyncio.sleep(0.01)
        except Exception as error:
            ended.set_result(error)

    async with serving(ticking, ping_seconds=0.1) as server:
        client = await connected(server)
        assert b"keepalive ping timeout" in await client.rest()
        assert isinstance(await ended, OSError)
