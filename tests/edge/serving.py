"""An HTTP server with limits on a free port of this process, over an application that a test decides."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from grid.edge.connections import ConnectionLimits
from grid.edge.server import make_server
from tests.support.waiting import eventually

PATIENT = ConnectionLimits(head_seconds=20, body_idle_seconds=20, send_seconds=20, linger_seconds=0.4)
SHORT = ConnectionLimits(head_seconds=0.4, body_idle_seconds=0.4, send_seconds=0.4, linger_seconds=0.4)
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)


@dataclass
class App:
    """Reads the body, says its length, and for `/long` sends without an end; remembers how requests ended."""

    ended: list[str] = field(default_factory=list)
    received: list[Any] = field(default_factory=list)
    accepts: Callable[[], Awaitable[object]] | None = None  # awaited before a websocket is accepted

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._websocket(receive, send)
        else:
            await self._http(scope, receive, send)

    async def _http(self, scope: Any, receive: Any, send: Any) -> None:
        length, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.ended.append("disconnect")
                return
            length += len(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while scope["path"] == "/long":
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            gone = asyncio.ensure_future(receive())
            await asyncio.sleep(0)
            if gone.done():
                self.ended.append("disconnect")
                return
            gone.cancel()
        await send({"type": "http.response.body", "body": f"{length} bytes of {scope['path']}".encode()})
        self.ended.append("complete")

    async def _websocket(self, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "websocket.connect"
        if self.accepts is not None:
            await self.accepts()
        await send({"type": "websocket.accept"})
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.ended.append(f"disconnect {message['code']}")
                return
            self.received.append(message)


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes | str) -> None:
        self.writer.write(data.encode("latin-1") if isinstance(data, str) else data)

    async def rest(self) -> bytes:
        """All that comes until the server closes."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""

    async def until(self, end: bytes) -> bytes:
        return await self.reader.readuntil(end)


@dataclass
class Serving:
    port: int
    _clients: list[Client] = field(default_factory=list)

    async def connect(self, *, source: str = "127.0.0.1", buffer: int | None = None) -> Client:
        """From any of the loopback's addresses; `buffer` is how many bytes of answers the kernel keeps for it."""
        connection = socket.socket()
        connection.setblocking(False)
        if buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        client = Client(*await asyncio.open_connection(sock=connection, limit=2**16))
        self._clients.append(client)
        return client

    async def ask(self, sent: bytes | str, *, source: str = "127.0.0.1") -> bytes:
        client = await self.connect(source=source)
        client.send(sent)
        return await client.rest()

    async def get(self, path: str = "/", *, source: str = "127.0.0.1") -> bytes:
        return await self.ask(head("GET", path, "Connection: close"), source=source)


@asynccontextmanager
async def serving(
    app: Any,
    *,
    limits: ConnectionLimits = PATIENT,
    message_bytes: int = 4096,
    trusted_proxies: tuple[str, ...] = (),
    ping_seconds: float = 20.0,
) -> AsyncIterator[Serving]:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    listening = socket.create_server(("127.0.0.1", 0))
    server = make_server(
        application,
        message_bytes=message_bytes,
        trusted_proxies=trusted_proxies,
        limits=limits,
        ping_seconds=ping_seconds,
    )
    running = asyncio.create_task(server.serve(sockets=[listening]))
    await eventually(lambda: server.started)
    serving = Serving(listening.getsockname()[1])
    try:
        yield serving
    finally:
        for client in serving._clients:
            client.writer.close()
            with contextlib.suppress(OSError):
                await client.writer.wait_closed()
        server.should_exit = True
        await running


def head(method: str, path: str, *headers: str) -> str:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: test", *headers, "", ""])


def refusals(records: list[logging.LogRecord]) -> list[str]:
    """The lines of log that say a refusal, and any that has a traceback, which none may have."""
    assert [record.getMessage() for record in records if record.exc_info] == []
    return [record.getMessage() for record in records if record.getMessage().startswith("refused ")]
