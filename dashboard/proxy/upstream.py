"""Connections to programs' servers, each for one exchange of HTTP/1.1 at a time.

A general client would spend a third of what a small request costs on what a proxy has no use for: URLs, redirects, cookies, compression.
This has what is left: framing, by the parser that reads the browsers' requests too; back-pressure both ways; a bound on what a program
makes us hold; and connections that are kept. A kept one is used again only after both sides have said all of an exchange, and what comes
without having been asked for closes it: so no answer can be taken for another request's.
"""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from dashboard.proxy.headers import Headers

_CONNECT_SECONDS = 5.0
_KEPT_SECONDS = 15.0  # without a request; programs' servers close theirs at some time too
_LONGEST_HEAD = 64 * 2**10  # bytes of a head, and of what else the parser keeps until it is whole, as a trailer
_HELD_AT_MOST = 256 * 2**10  # bytes of a body that the browser has not read yet; one read of the socket may exceed it
_SWITCHING_PROTOCOLS = 101


class BrokenAnswer(ConnectionError):
    """Raised when a program's server closes the connection, or what it sends is no answer."""


class HungUp(BrokenAnswer):
    """Raised when the server has closed the connection before it sent anything; if that was kept, the server may have closed it as idle."""


class Cut(Exception):
    """Raised to whoever waits for an exchange that has been cut."""


class ProgramConnection(asyncio.Protocol):
    """One connection to a program's server. `headers` and `status` are those of the answer that `answered` has waited for."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        self._room.set()
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        # As browsers are; a program can mislead its own visitors only by it.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._reset()
        self.is_complete = self._is_sent = self._is_kept = True  # nothing has been asked yet
        self.kept_since = 0.0

    def _reset(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_complete = False  # the last byte of the answer is here
        self._failure: Exception | None = None
        self._parts: list[bytes] = []
        self._held = 0  # bytes in them
        self._unseen = 0  # bytes that the parser may hold
        self._is_paused = self._ends_by_closing = False

    # --- the exchange ---

    def ask(self, head: bytes, *, method: str, body: str) -> None:
        """Send the head of a request. `body` is the name of the header that frames what follows it, "" for nothing."""
        self._reset()
        self._is_bodiless, self._is_sent, self._is_chunked = method == "HEAD", not body, body == "transfer-encoding"
        if self._transport.is_closing():
            self._failure = HungUp("closed")
        else:
            self._transport.write(head)

    async def send(self, part: bytes, *, more: bool) -> None:
        """Send a part of the body, and wait until there is room for the next."""
        if self._is_chunked:
            part = b"%x\r\n%b\r\n" % (len(part), part) if part else b""
            part = part if more else part + b"0\r\n\r\n"
        if part and not self._transport.is_closing():
            self._transport.write(part)
        self._is_sent = not more
        await self._room.wait()

    async def answered(self) -> None:
        """Wait for the head of the answer."""
        while not self.status:
            await self._change()

    async def read(self) -> bytes:
        """Return what has come of the body, b"" at its end."""
        while not self._parts and not self.is_complete:
            await self._change()
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        if self._is_paused and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()
        return body

    def cut(self) -> None:
        """End the exchange at once: nothing more is read of it, and whoever waits gets Cut."""
        self._parts.clear()
        self.is_complete = False
        self._fail(Cut())

    @property
    def is_reusable(self) -> bool:
        return self.is_complete and self._is_sent and self._is_kept and not self._transport.is_closing()

    @property
    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._transport.abort()

    async def _change(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure
        self._transport.abort()
        self._wake()

    # --- asyncio's callbacks ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del self._parser  # it refers to this
        self._room.set()
        if self._ends_by_closing and exc is None and self._failure is None:
            self.is_complete = True
        if not self.is_complete:
            is_unheard = not self.status and not self._unseen
            self._fail(HungUp("closed") if is_unheard else BrokenAnswer("closed before the answer was whole"))
        self._wake()

    def data_received(self, data: bytes) -> None:
        if self.is_complete or self._failure is not None:
            self._transport.abort()
            return
        self._unseen += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._is_kept = False
            if not self.is_complete:
                self._fail(BrokenAnswer(f"no answer: {type(error).__name__}"))
        if self._unseen > _LONGEST_HEAD:
            self._fail(BrokenAnswer("its head is too long"))
        if self._held > _HELD_AT_MOST and not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    # --- the parser's callbacks ---

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise ValueError  # the parser gives up: nobody has asked for a second answer
        self.headers = []  # those of an interim answer are for nobody

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # else it is a trailer's
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if not 100 <= status < 600 or status == _SWITCHING_PROTOCOLS:
            raise ValueError
        if status < 200:
            return
        self.status, self._unseen = status, 0
        self._is_kept = self._parser.should_keep_alive()
        if self._is_bodiless:
            # The parser does not know and waits for a body.
            self.is_complete, self._is_kept = True, False
        elif not self._is_kept:
            self._ends_by_closing = _ends_by_closing(self.headers)

    def on_body(self, body: bytes) -> None:
        if not self.is_complete:
            self._parts.append(body)
            self._held += len(body)
            self._unseen = 0

    def on_message_complete(self) -> None:
        self.is_complete = self.status > 0


def _ends_by_closing(headers: list[tuple[bytes, bytes]]) -> bool:
    """Return whether nothing but the end of the connection ends the body: https://www.rfc-editor.org/rfc/rfc9112#section-6.3"""
    names = {name.lower() for name, _ in headers}
    if b"transfer-encoding" not in names:
        return b"content-length" not in names
    codings = b",".join(value for name, value in headers if name.lower() == b"transfer-encoding")
    return codings.rpartition(b",")[2].strip().lower() != b"chunked"


class ProgramConnections:
    """Makes connections and keeps those that can be used again, by the address of their server."""

    def __init__(self) -> None:
        self._kept: dict[str, list[ProgramConnection]] = {}
        self._sweep: asyncio.TimerHandle | None = None

    def kept(self, netloc: str) -> ProgramConnection | None:
        """Return one that was kept, the last one first; None when there is none."""
        kept = self._kept.get(netloc)
        while kept:
            connection = kept.pop()
            if not connection.is_closing:
                return connection
        return None

    async def new(self, netloc: str) -> ProgramConnection:
        """Return a new connection. Raise OSError or TimeoutError when the server cannot be reached."""
        host, _, port = netloc.rpartition(":")
        async with asyncio.timeout(_CONNECT_SECONDS):
            loop = asyncio.get_running_loop()
            _transport, connection = await loop.create_connection(ProgramConnection, host.strip("[]"), int(port))
        return connection

    def take_back(self, netloc: str, connection: ProgramConnection) -> None:
        """Keep the connection if it can be used again, else close it."""
        if not connection.is_reusable:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        connection.kept_since = loop.time()
        self._kept.setdefault(netloc, []).append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(_KEPT_SECONDS, self._sweep_now)

    def _sweep_now(self) -> None:
        loop = asyncio.get_running_loop()
        self._close_those(lambda connection: loop.time() - connection.kept_since >= _KEPT_SECONDS)
        self._sweep = loop.call_later(_KEPT_SECONDS, self._sweep_now) if self._kept else None

    def _close_those(self, is_meant: Callable[[ProgramConnection], bool]) -> None:
        for netloc, kept in list(self._kept.items()):
            for connection in filter(is_meant, kept):
                connection.close()
            left = [connection for connection in kept if not connection.is_closing]
            if left:
                self._kept[netloc] = left
            else:
                del self._kept[netloc]

    def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._close_those(lambda _connection: True)


def head(method: str, target: str, headers: Headers) -> bytes:
    """Return the head of a request. Raise BrokenAnswer for what would be more than one line of it."""
    lines = [f"{method} {target} HTTP/1.1", *[f"{name}: {value}" for name, value in headers]]
    text = "\r\n".join(lines)
    if text.count("\n") >= len(lines) or text.count("\r") >= len(lines) or "\0" in text:
        raise BrokenAnswer("a header would be two")
    return f"{text}\r\n\r\n".encode("latin-1")
