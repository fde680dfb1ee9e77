"""One HTTP exchange, streamed both ways: nothing is kept whole in memory, and a slow reader slows the sender down."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
from yarl import URL

from dashboard.proxy.headers import encode, first, to_browser, to_upstream
from dashboard.proxy.upstream import Receive, Route, Scope, Send


async def forward_http(scope: Scope, receive: Receive, send: Send, route: Route) -> None:
    """Raises aiohttp.ClientError, TimeoutError or OSError when the pod's server cannot be reached."""
    has_body = bool(first(route.headers, "content-length") or first(route.headers, "transfer-encoding"))
    gone = asyncio.Event()
    async with route.session.request(
        scope["method"],
        URL(f"http://{route.netloc}{route.path}", encoded=True),
        headers=to_upstream(
            route.headers, token=route.token, scheme=route.scheme, client=route.client, place=route.place
        ),
        data=_request_body(receive, gone) if has_body else None,
        allow_redirects=False,
    ) as response:
        await send(
            {
                "type": "http.response.start",
                "status": response.status,
                "headers": encode(to_browser(list(response.headers.items()), place=route.place, asked=route.path)),
            }
        )
        await _relay_body(response, receive, send, gone, route)


async def _relay_body(
    response: aiohttp.ClientResponse, receive: Receive, send: Send, gone: asyncio.Event, route: Route
) -> None:
    watcher = asyncio.create_task(_wait_for_disconnect(receive, gone))
    relay = asyncio.create_task(_copy_body(response, send))
    # An endless answer (server-sent events) must end when the reader leaves, or may not read it any more, not when the pod next
    # writes. Without its end the server cuts the connection.
    right = asyncio.create_task(route.ended.wait())
    try:
        await asyncio.wait({watcher, relay, right}, return_when=asyncio.FIRST_COMPLETED)
        if relay.done():
            relay.result()
    finally:
        for task in (watcher, relay, right):
            task.cancel()
        await asyncio.gather(watcher, relay, right, return_exceptions=True)


async def _copy_body(response: aiohttp.ClientResponse, send: Send) -> None:
    try:
        async for chunk in response.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except aiohttp.ClientError:
        # Half an answer was sent: leaving it unfinished makes the server cut the connection, which tells the browser.
        return
    await send({"type": "http.response.body", "body": b""})


async def _request_body(receive: Receive, gone: asyncio.Event) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            gone.set()
            raise ConnectionResetError("The browser went away while it was sending.")
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body"):
            return


async def _wait_for_disconnect(receive: Receive, gone: asyncio.Event) -> None:
    while not gone.is_set():
        message = await receive()
        if message["type"] == "http.disconnect":
            gone.set()
