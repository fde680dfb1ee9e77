"""Forwards one HTTP exchange, streamed both ways: no body is held whole in memory, and a slow reader slows the sender down."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
from yarl import URL

from dashboard.proxy.headers import decode, encode, first, to_browser
from dashboard.proxy.measured import answered_by_program
from dashboard.proxy.upstream import AccessEnded, Message, Receive, Route, Scope, Send, raced
from grid.observability import tracing

_BODILESS = frozenset({204, 304})
_UNTAKEN_SECONDS = 120.0  # after this time without reading the body, a program is given up


async def forward_http(scope: Scope, receive: Receive, send: Send, route: Route) -> None:
    """Forward the exchange. Raise aiohttp.ClientError, TimeoutError or OSError when the pod's server cannot be reached, AccessEnded when
    the right to it ends before the response has begun."""
    sent = asyncio.Queue[Message](1)
    has_begun = False

    async def send_on(message: Message) -> None:
        nonlocal has_begun
        has_begun = True
        await send(message)

    # The exchange is cancelled when the browser disconnects or the right to it ends, even while the pod reads a body, computes, or
    # streams without end. A response that has begun is left unfinished, so that the server cuts the connection.
    exchange, reading = _exchange(scope, sent, send_on, route), _read(receive, sent)
    answer, left, _right = (await raced(exchange, reading, route.ended.wait()))[1]
    if not answer.cancelled():
        answer.result()
    elif left.cancelled() and not has_begun:
        raise AccessEnded


async def _exchange(scope: Scope, sent: "asyncio.Queue[Message]", send: Send, route: Route) -> None:
    has_body = bool(first(route.headers, "content-length") or first(route.headers, "transfer-encoding"))
    # No path: it may name people's files, and programs put tokens into queries.
    with tracing.span(scope["method"], tracing.CLIENT, server__address=route.netloc) as span:
        response = await route.session.request(
            scope["method"],
            URL(f"http://{route.netloc}{route.path}", encoded=True),
            headers=route.headers_upstream(),
            data=_request_body(sent) if has_body else None,
            allow_redirects=False,
        )
        span.set("http.response.status_code", response.status)
    async with response:
        if not 200 <= response.status < 600:
            raise aiohttp.ClientPayloadError(f"{response.status} is no answer to this request.")
        headers = to_browser(decode(response.raw_headers), path_prefix=route.path_prefix, asked=route.path)
        if response.status in _BODILESS:  # some servers send the length of the omitted body, for which ours would wait
            headers = [(name, value) for name, value in headers if name != "content-length"]
        answered_by_program(scope)
        await send({"type": "http.response.start", "status": response.status, "headers": encode(headers)})
        await _copy_body(response, send)


async def _copy_body(response: aiohttp.ClientResponse, send: Send) -> None:
    try:
        async for chunk in response.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except aiohttp.ClientError:
        # Half a response was sent: left unfinished, it makes the server cut the connection, which tells the browser.
        return
    await send({"type": "http.response.body", "body": b""})


async def _read(receive: Receive, sent: "asyncio.Queue[Message]", *, untaken: float = _UNTAKEN_SECONDS) -> None:
    """Read the browser's messages, no faster than they are forwarded, until it disconnects. Only this task receives, because a program may
    respond while the body is still being sent. While a program does not read the body, a disconnect is not noticed, hence `untaken`."""
    while (message := await receive())["type"] != "http.disconnect":
        try:
            async with asyncio.timeout(untaken):
                await sent.put(message)
        except TimeoutError:
            return


async def _request_body(sent: "asyncio.Queue[Message]") -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await sent.get()
        if message.get("body"):
            yield message["body"]
        more = message.get("more_body", False)
