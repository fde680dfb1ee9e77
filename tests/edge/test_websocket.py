"""What a websocket may do, tried with real sockets and frames made by hand."""

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
