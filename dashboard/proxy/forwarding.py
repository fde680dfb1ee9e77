"""Forwards one exchange to its pod: HTTP, streamed both ways, so that no body is held whole in memory and a slow reader slows the sender
down; or a websocket, relayed both ways with back-pressure, and closed when the right to it ends.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import WSMsgType
from yarl import URL

from dashboard.proxy.gate import Ending
from dashboard.proxy.headers import Headers, first, for_aiohttp, to_browser
from dashboard.proxy.measured import answered_by_program, is_answered
from dashboard.proxy.path_prefix import PathPrefix
from dashboard.proxy.upstream import BrokenAnswer, Cut, HungUp, ProgramConnection, ProgramConnections, head
from grid.edge.refusals import Receive, Scope, Send
from grid.observability import tracing

_FRAMING = frozenset({"content-length", "transfer-encoding"})
# What may be asked twice: https://www.rfc-editor.org/rfc/rfc9110#section-9.2.2
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_BODILESS = frozenset({204, 304})
_LEAVING_SECONDS = 0.05  # most answers are whole sooner; after it somebody watches whether the browser has gone
_UNTAKEN_SECONDS = 120.0  # after this time without reading the body, a program is given up
_POLICY_VIOLATION = 1008
_GOING_AWAY = 1001
# Maximum bytes of one message from the pod, which is held whole in the memory of the shared process.
_LARGEST_ANSWER = 64 * 2**20
_SENDABLE = frozenset({1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011})


class AccessEnded(Exception):
    """Raised when the right to an execution ends before its program has responded."""


@dataclass(frozen=True, slots=True)
class Route:
    """One request's route to the pod. `path` is raw (still encoded), with its query, as requested from the program; `headers` are the
    browser's, `sent_headers` what the pod gets. `ended` is set when the right to it ends: by a logout, a lost membership, the end of the
    execution. `used` is called when the user is active."""

    connections: ProgramConnections
    session: aiohttp.ClientSession
    netloc: str
    path: str
    headers: Headers
    sent_headers: Headers
    ended: Ending
    used: Callable[[], None]
    path_prefix: PathPrefix


Tasks = list[asyncio.Future[Any]]


async def raced(*ways: Awaitable[Any]) -> tuple[Tasks, Tasks]:
    """Run these until one has ended, and cancel the others; return what had ended by itself, and all of them in their order."""
    tasks: Tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return list(done), tasks


async def forward_http(scope: Scope, receive: Receive, send: Send, route: Route) -> None:
    """Forward the exchange. Raise TimeoutError or OSError when the pod's server cannot be reached, AccessEnded when the right to it ends
    before the response has begun."""
    connections, framing = route.connections, next((name for name, _ in route.sent_headers if name in _FRAMING), "")
    asked = head(scope["method"], route.path, route.sent_headers)
    connection = connections.kept(route.netloc)
    if connection is not None:
        try:
            await _exchange(connection, asked, framing, scope, receive, send, route)
            return
        except HungUp:  # it was closed while it was kept
            if framing or scope["method"] not in _REPEATABLE:
                raise
    connection = await connections.new(route.netloc)
    await _exchange(connection, asked, framing, scope, receive, send, route)


async def _exchange(
    connection: ProgramConnection, asked: bytes, framing: str, scope: Scope, receive: Receive, send: Send, route: Route
) -> None:
    # The exchange is cut when the browser disconnects or the right to it ends, even while the pod reads a body, computes, or streams
    # without end. A response that has begun is left unfinished, so that the server cuts the connection.
    reading: list[asyncio.Task[None]] = []

    def read() -> None:
        reading.append(asyncio.create_task(_read(receive, connection, has_body=bool(framing))))

    # A task for each short request would cost more than all that is decided about it.
    later = asyncio.get_running_loop().call_later(0 if framing else _LEAVING_SECONDS, read)
    route.ended.cuts.add(connection.cut)
    try:
        if route.ended.is_set():
            raise AccessEnded
        connection.ask(asked, method=scope["method"], body=framing)
        # No path: it may name people's files, and programs put tokens into queries.
        with tracing.span(scope["method"], tracing.CLIENT, server__address=route.netloc) as span:
            await connection.answered()
            span.set("http.response.status_code", connection.status)
        await _answer(connection, scope, send, route)
    except Cut:
        if route.ended.is_set() and not is_answered(scope):
            raise AccessEnded from None
    finally:
        route.ended.cuts.discard(connection.cut)
        later.cancel()
        for task in reading:
            task.cancel()
        route.connections.take_back(route.netloc, connection)


async def _answer(connection: ProgramConnection, scope: Scope, send: Send, route: Route) -> None:
    headers = to_browser(connection.headers, path_prefix=route.path_prefix, asked=route.path)
    if connection.status in _BODILESS:  # some servers send the length of the omitted body, for which ours would wait
        headers = [(name, value) for name, value in headers if name != b"content-length"]
    answered_by_program(scope)
    await send({"type": "http.response.start", "status": connection.status, "headers": headers})
    more = True
    while more:
        try:
            chunk = await connection.read()
        except BrokenAnswer:
            # Half a response was sent: left unfinished, it makes the server cut the connection, which tells the browser.
            return
        more = not connection.is_complete
        await send({"type": "http.response.body", "body": chunk, "more_body": more})


async def _read(receive: Receive, connection: ProgramConnection, *, has_body: bool) -> None:
    """Read the browser's messages, no faster than they are forwarded, until it disconnects, then cut. Only this task receives, because a
    program may respond while the body is still being sent. While a program does not read the body, a disconnect is not noticed, hence the
    timeout."""
    with contextlib.suppress(TimeoutError):
        while (message := await receive())["type"] != "http.disconnect":
            if has_body:
                has_body = message.get("more_body", False)
                async with asyncio.timeout(_UNTAKEN_SECONDS):
                    await connection.send(message.get("body", b""), more=has_body)
    connection.cut()


async def forward_websocket(scope: Scope, receive: Receive, send: Send, route: Route) -> None:
    """Relay the websocket. The browser is accepted only after the pod's server has accepted, so that a refusal there is one here. Raise
    AccessEnded when the right to it ends before."""
    await receive()  # websocket.connect
    answer: asyncio.Future[aiohttp.ClientWebSocketResponse]
    # Before the accept, a browser's only message is its disconnect.
    answer, _left, _right = (await raced(_handshake(route), receive(), route.ended.wait()))[1]
    if answer.cancelled():
        raise AccessEnded
    upstream = answer.result()
    try:
        # From here on only the browser's side raises OSError: its disconnect is no failure of the pod's server.
        with contextlib.suppress(OSError):
            await send({"type": "websocket.accept", "subprotocol": upstream.protocol})
            ways = _from_browser(receive, upstream, route.used), _from_pod(upstream, send), _while_allowed(route)
            done, _ways = await raced(*ways)
            code = done[0].result()
            # 1005 and 1006 may not be sent (RFC 6455, section 7.4.1).
            code = code if code in _SENDABLE or 3000 <= code <= 4999 else _GOING_AWAY
            await send({"type": "websocket.close", "code": code})
    finally:
        await upstream.close()


async def _handshake(route: Route) -> aiohttp.ClientWebSocketResponse:
    wanted = first(route.headers, "sec-websocket-protocol").split(",")
    with tracing.span("websocket", tracing.CLIENT, server__address=route.netloc):
        return await route.session.ws_connect(
            URL(f"ws://{route.netloc}{route.path}", encoded=True),
            headers=[*for_aiohttp(route.sent_headers), ("sec-websocket-version", "13")],
            protocols=[protocol.strip() for protocol in wanted if protocol.strip()],
            max_msg_size=_LARGEST_ANSWER,
        )


async def _from_browser(receive: Receive, upstream: aiohttp.ClientWebSocketResponse, used: Callable[[], None]) -> int:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return int(message.get("code") or _GOING_AWAY)
        used()
        try:
            if message.get("bytes") is not None:
                await upstream.send_bytes(message["bytes"])
            else:
                await upstream.send_str(message["text"])
        except ConnectionError:
            return _GOING_AWAY


async def _from_pod(upstream: aiohttp.ClientWebSocketResponse, send: Send) -> int:
    async for message in upstream:
        if message.type is WSMsgType.BINARY:
            await send({"type": "websocket.send", "bytes": message.data})
        elif message.type is WSMsgType.TEXT:
            await send({"type": "websocket.send", "text": message.data})
    return upstream.close_code or _GOING_AWAY


async def _while_allowed(route: Route) -> int:
    await route.ended.wait()
    return _POLICY_VIOLATION
