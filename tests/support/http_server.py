"""A tiny HTTP server on loopback whose answers a test decides, for code whose other side is the network."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Server:
    """`url` has no path; `seen` holds every request, with its body in `bodies` at the same place."""

    answer: Answer
    url: str = ""
    seen: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.seen.append(request)
        return await self.answer(request)


@asynccontextmanager
async def serving(answer: Answer, *, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    # An answer that never comes ends with whoever gave up waiting for it, not after the test.
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        await runner.cleanup()
