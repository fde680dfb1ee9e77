"""One exchange with a program that behaves oddly, and its end in whatever state it is, between real sockets."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest

from dashboard.proxy.gate import Target
from tests.proxy.support import COOKIE, HOST, ORIGIN, OpenToOneSecret, visiting


@dataclass
class Program:
    """In the pod: says byte for byte what a test wants; `asked` has come, `left` is the end of its connection."""

    answer: bytes = b""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    is_tired: bool = False  # it closes the connection on which it is asked a second time

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            self.asked.set()
            writer.write(self.answer)
            while await reader.read(65536) and not self.is_tired:
                pass
        writer.close()
        self.left.set()


@pytest.fixture
async def program() -> Program:
    return Program()


@pytest.fixture
async def gate(program: Program) -> AsyncIterator[OpenToOneSecret]:
    server = await asyncio.start_server(program.serve, "127.0.0.1", 0)
    async with server:
        yield OpenToOneSecret(address=Target("127.0.0.1", server.sockets[0].getsockname()[1]))


async def body_without_end() -> AsyncIterator[bytes]:
    yield b"first"
    await asyncio.Event().wait()


async def soon(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 10)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_unanswered_request_ends_with_its_permission(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret, program: Program, method: str
) -> None:
    data = body_without_end() if method == "POST" else None
    asking = asyncio.create_task(browser.request(method, "/", headers=COOKIE, data=data))
    await soon(program.asked)
    gate.close()
    await soon(program.left)
    answer = await asking
    assert answer.status == 403
    answer.close()


@pytest.mark.parametrize("upgrade", [False, True])
async def test_browser_leaving_before_answer_keeps_nothing_open(
    gate: OpenToOneSecret, program: Program, upgrade: bool
) -> None:
    async with visiting(gate) as browser, aiohttp.ClientSession(browser._base_url, headers=HOST) as leaving:
        asking = leaving.ws_connect("/", headers=COOKIE, origin=ORIGIN) if upgrade else leaving.get("/", headers=COOKIE)
        task = asyncio.ensure_future(asking)
        await soon(program.asked)
        task.cancel()
        await leaving.close()
        await soon(program.left)


async def test_unaccepted_websocket_ends_with_its_permission(
    browser: aiohttp.ClientSession, gate: OpenToOneSecret, program: Program
) -> None:
    asking = asyncio.ensure_future(browser.ws_connect("/", headers=COOKIE, origin=ORIGIN))
    await soon(program.asked)
    gate.close()
    await soon(program.left)
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await asking
    assert refused.value.status == 403


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", 204),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200),
        (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 502),
        (b"HTTP/1.1 700 Odd\r\nContent-Length: 0\r\n\r\n", 502),
        (b"hello", 502),
    ],
)
async def test_odd_answer_is_passed_or_refused_without_traceback(
    browser: aiohttp.ClientSession, program: Program, answer: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    program.answer = answer
    async with browser.get("/", headers=COOKIE) as got:
        assert got.status == status
        await got.read()
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("POST", 502)])
async def test_request_on_connection_that_closes_is_repeated_if_harmless(
    browser: aiohttp.ClientSession, program: Program, method: str, status: int
) -> None:
    program.answer, program.is_tired = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", True
    for asked, expected in (("GET", 200), (method, status)):
        async with browser.request(asked, "/", headers=COOKIE) as answer:
            assert answer.status == expected
            await answer.read()


async def test_headers_pass_byte_by_byte(browser: aiohttp.ClientSession, program: Program) -> None:
    name = 'attachment; filename="日本.txt"'
    program.answer = (
        b"HTTP/1.1 200 OK\r\nContent-Disposition: %s\r\nX-Old: \xe9\r\nContent-Length: 0\r\n\r\n" % name.encode()
    )
    async with browser.get("/", headers=COOKIE) as answer:
        raw = dict(answer.raw_headers)
    assert (raw[b"content-disposition"], raw[b"x-old"]) == (name.encode(), b"\xe9")
