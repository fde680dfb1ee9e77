"""Relays one websocket both ways with back-pressure, and closes it when the right to it ends."""

import asyncio
import contextlib
from collections.abc import Callable

import aiohttp
from aiohttp import WSMsgType
from yarl import URL

from dashboard.proxy.headers import first
from dashboard.proxy.upstream import AccessEnded, Receive, Route, Scope, Send, raced
from grid.observability import tracing

_POLICY_VIOLATION = 1008
_GOING_AWAY = 1001
# Maximum bytes of one message from the pod, which is held whole in the memory of the shared process.
_LARGEST_ANSWER = 64 * 2**20
_SENDABLE = frozenset({1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011})


async def forward_websocket(scope: Scope, receive: Receive, send: Send, route: Route) -> None:
    """Relay the websocket. The browser is accepted only after the pod's server has accepted, so that a refusal there is one here. Raise
    AccessEnded when the right to it ends before."""
    await receive()  # websocket.connect
    upstream = await _connect(receive, route)
    try:
        # From here on only the browser's side raises OSError: its disconnect is no failure of the pod's server.
        with contextlib.suppress(OSError):
            await send({"type": "websocket.accept", "subprotocol": upstream.protocol})
            ways = _from_browser(receive, upstream, route.used), _from_pod(upstream, send), _while_allowed(route)
            done, _ways = await raced(*ways)
            await send({"type": "websocket.close", "code": _sendable(done[0].result())})
    finally:
        await upstream.close()


async def _connect(receive: Receive, route: Route) -> aiohttp.ClientWebSocketResponse:
    """Connect to the pod, unless the browser disconnects or its right ends first. Before the accept, a browser's only message is its
    disconnect."""
    answer: asyncio.Future[aiohttp.ClientWebSocketResponse]
    answer, _left, _right = (await raced(_handshake(route), receive(), route.ended.wait()))[1]
    if answer.cancelled():
        raise AccessEnded
    return answer.result()


async def _handshake(route: Route) -> aiohttp.ClientWebSocketResponse:
    wanted = first(route.headers, "sec-websocket-protocol").split(",")
    with tracing.span("websocket", tracing.CLIENT, server__address=route.netloc):
        return await route.session.ws_connect(
            URL(f"ws://{route.netloc}{route.path}", encoded=True),
            headers=[*route.headers_upstream(), ("sec-websocket-version", "13")],
            protocols=[protocol.strip() for protocol in wanted if protocol.strip()],
            max_msg_size=_LARGEST_ANSWER,
        )


def _sendable(code: int) -> int:
    """Return a close code that may be sent; 1005 and 1006 may not (RFC 6455, section 7.4.1)."""
    return code if code in _SENDABLE or 3000 <= code <= 4999 else _GOING_AWAY


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
