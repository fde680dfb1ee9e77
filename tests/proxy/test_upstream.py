"""A connection to a program's server, byte by byte: where an answer ends, what is held, and when the connection serves another request."""

import asyncio
from collections.abc import Callable

import pytest

from dashboard.proxy.headers import Headers
from dashboard.proxy.upstream import BrokenAnswer, Cut, HungUp, ProgramConnection, ProgramConnections, head

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LENGTH = OK + b"Content-Length: 3\r\n\r\n"


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent, self.said, self.is_closed = b"", list[str](), False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def pause_reading(self) -> None:
        self.said.append("pause")

    def resume_reading(self) -> None:
        self.said.append("resume")

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True


def connected() -> tuple[ProgramConnection, FakeTransport]:
    connection, transport = ProgramConnection(), FakeTransport()
    connection.connection_made(transport)
    return connection, transport


async def body_of(connection: ProgramConnection) -> bytes:
    await connection.answered()
    body = b""
    while True:
        body += await connection.read()
        if connection.is_complete:
            return body


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize(
    ("method", "answer", "ends", "body", "is_reusable"),
    [
        ("GET", LENGTH + b"abc", False, b"abc", True),
        ("GET", CHUNKED + b"2;x=y\r\nab\r\n1\r\nc\r\n0\r\nX-Trailer: t\r\n\r\n", False, b"abc", True),
        ("GET", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + LENGTH + b"abc", False, b"abc", True),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", False, b"", True),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", False, b"", True),
        ("GET", OK + b"Connection: close\r\nContent-Length: 3\r\n\r\nabc", False, b"abc", False),
        ("GET", b"HTTP/1.0 200 OK\r\n\r\nabc", True, b"abc", False),
        ("GET", OK + b"Transfer-Encoding: gzip\r\n\r\nabc", True, b"abc", False),
        ("HEAD", LENGTH, False, b"", False),
        ("GET", LENGTH + b"abc" + LENGTH, False, b"abc", False),  # one answer more than was asked for
        ("GET", LENGTH + b"abcd", False, b"abc", False),
    ],
)
async def test_answer_ends_where_its_framing_says(
    method: str, answer: bytes, ends: bool, body: bytes, is_reusable: bool, in_pieces: bool
) -> None:
    connection, _transport = connected()
    connection.ask(b"", method=method, body="")
    for start in range(len(answer)) if in_pieces else (0,):
        connection.data_received(answer[start : start + 1] if in_pieces else answer)
    if ends:
        connection.connection_lost(None)
    assert await body_of(connection) == body
    assert (b"X-Trailer", b"t") not in connection.headers
    assert b"Link" not in dict(connection.headers)
    assert connection.is_reusable is is_reusable


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (b"", HungUp),
        (b"HTTP/1.1 200", BrokenAnswer),
        (LENGTH + b"ab", BrokenAnswer),
        (CHUNKED + b"3\r\nab", BrokenAnswer),
        (OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", BrokenAnswer),
        (OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", BrokenAnswer),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", BrokenAnswer),
        (b"HTTP/1.1 099 Odd\r\n\r\n", BrokenAnswer),
    ],
)
async def test_answer_that_is_cut_or_ambiguous_is_no_whole_answer(answer: bytes, failure: type[BrokenAnswer]) -> None:
    connection, _transport = connected()
    connection.ask(b"", method="GET", body="")
    connection.data_received(answer)
    connection.connection_lost(None)
    with pytest.raises(BrokenAnswer) as raised:
        await body_of(connection)
    assert type(raised.value) is failure


@pytest.mark.parametrize("answer", [OK + b"X: ", CHUNKED + b"0\r\nX-Trailer: ", CHUNKED + b"1;x="])
async def test_program_cannot_fill_our_memory_with_what_is_no_body(answer: bytes) -> None:
    connection, transport = connected()
    connection.ask(b"", method="GET", body="")
    connection.data_received(answer)
    for _ in range(63):
        connection.data_received(b"x" * 1024)
    assert not transport.is_closed
    for _ in range(2):
        connection.data_received(b"x" * 1024)
    assert transport.is_closed


async def test_program_is_read_no_faster_than_the_browser_reads() -> None:
    connection, transport = connected()
    connection.ask(b"", method="GET", body="")
    connection.data_received(OK + b"Content-Length: 1000000\r\n\r\n" + b"x" * 200_000)
    assert transport.said == []
    connection.data_received(b"x" * 100_000)
    assert transport.said == ["pause"]
    assert len(await connection.read()) == 300_000
    assert transport.said == ["pause", "resume"]


async def test_body_is_sent_no_faster_than_the_program_reads() -> None:
    connection, transport = connected()
    connection.ask(b"POST", method="POST", body="transfer-encoding")
    await connection.send(b"abc", more=True)
    connection.pause_writing()
    sending = asyncio.ensure_future(connection.send(b"d" * 16, more=False))
    await asyncio.sleep(0)
    assert not sending.done()
    connection.resume_writing()
    await sending
    assert transport.sent == b"POST3\r\nabc\r\n10\r\n" + b"d" * 16 + b"\r\n0\r\n\r\n"


async def test_connection_with_half_a_request_serves_no_other() -> None:
    connection, _transport = connected()
    connection.ask(b"", method="POST", body="content-length")
    await connection.send(b"abc", more=True)
    connection.data_received(LENGTH + b"abc")
    assert connection.is_complete
    assert not connection.is_reusable


async def test_cut_exchange_says_nothing_more_even_of_what_has_come() -> None:
    connection, transport = connected()
    connection.ask(b"", method="GET", body="")
    connection.data_received(LENGTH + b"abc")
    connection.cut()
    with pytest.raises(Cut):
        await connection.read()
    assert transport.is_closed


async def test_kept_connection_is_used_again_unless_it_says_something_unasked() -> None:
    connections = ProgramConnections()
    for says, is_kept in ((b"", True), (b"\r\n", False), (LENGTH, False)):
        connection, transport = connected()
        connections.take_back("10.0.0.1:80", connection)
        if says:
            connection.data_received(says)
        assert transport.is_closed is not is_kept
        assert connections.kept("10.0.0.1:80") is (connection if is_kept else None)
    connections.close()


async def test_connection_lost_before_it_is_asked_answers_nothing() -> None:
    connection, transport = connected()
    transport.abort()
    connection.connection_lost(None)
    connection.ask(b"", method="GET", body="")
    with pytest.raises(HungUp):
        await connection.answered()


async def test_unused_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    later: list[Callable[[], None]] = []
    now = 100.0

    def call_later(_seconds: float, act: Callable[[], None]) -> object:
        later.append(act)
        return later

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "time", lambda: now)
    monkeypatch.setattr(loop, "call_later", call_later)
    connections, transports = ProgramConnections(), []
    for _ in range(2):
        connection, transport = connected()
        connections.take_back("10.0.0.1:80", connection)
        transports.append(transport)
        now += 10.0
    assert len(later) == 1
    later.pop()()
    assert [transport.is_closed for transport in transports] == [True, False]
    now += 10.0
    later.pop()()
    assert transports[1].is_closed
    assert later == []  # nothing is left to look at


@pytest.mark.parametrize(
    ("target", "headers"), [("/a\r\nx: y", []), ("/", [("x", "a\nb: c")]), ("/", [("x", "a\rb")]), ("/", [("x", "\0")])]
)
def test_head_has_one_line_for_each_header(target: str, headers: Headers) -> None:
    assert head("GET", "/%20?x", [("a", "b")]) == b"GET /%20?x HTTP/1.1\r\na: b\r\n\r\n"
    with pytest.raises(BrokenAnswer):
        head("GET", target, headers)
