"""An HTTP server before a real API server that delays, refuses and cuts answers, and notes who asked for what and for how long."""

import asyncio
import base64
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

_HOP = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}
_ADDED = (
    "Accept",
    "Accept-Encoding",
    "Content-Type",
    "User-Agent",
)  # by the client to each request: refused at /version
_START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was answered, except watches: the account that sent it, and when it began and ended on the monotonic clock."""

    account: str
    method: str
    path: str
    began: float
    ended: float


class FaultyServer:
    """Runs in a thread of its own. Each answer begins after `delay` seconds; `refusal` is sent in place of it. `accounts` are the names
    of accounts by their tokens, for `requests`."""

    def __init__(self, kubeconfig: Mapping[str, Any]) -> None:
        cluster = kubeconfig["clusters"][0]["cluster"]
        self.server = cluster["server"]
        self.delay = 0.0
        self.refusal: tuple[int, dict[str, str]] | None = None
        self.accounts: dict[str, str] = {}
        self.requests: list[Request] = []
        self.port = 0
        certificates = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._ssl = ssl.create_default_context(cadata=certificates)
        self._loop, self._open = asyncio.new_event_loop(), set[asyncio.Task[Any]]()
        self._is_ready = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()
        assert self._is_ready.wait(_START_SECONDS)

    def cut(self) -> None:
        """End every answer that is under way, watches too."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._open])

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda loop, context: None)  # cut connections are meant
        self._loop.run_until_complete(self._start())
        self._is_ready.set()
        self._loop.run_forever()

    async def _start(self) -> None:
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        task, began = asyncio.current_task(), time.monotonic()
        assert task is not None
        self._open.add(task)
        try:
            return await self._passed(request)
        finally:
            self._open.discard(task)
            if request.query.get("watch") != "true":
                account = self.accounts.get(request.headers.get("Authorization", "").removeprefix("Bearer "), "")
                self.requests.append(Request(account, request.method, request.path, began, time.monotonic()))

    async def _passed(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(self.delay)
        if self.refusal is not None:
            code, headers = self.refusal
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
            return web.json_response({**status, "message": "too many requests"}, status=code, headers=headers)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        try:
            async with self._session.request(
                request.method,
                self.server + request.raw_path,
                headers=headers,
                data=await request.read() or None,
                skip_auto_headers=_ADDED,
                ssl=self._ssl,
                timeout=timeout,
            ) as upstream:
                kept = {name: value for name, value in upstream.headers.items() if name.lower() not in _HOP}
                answer = web.StreamResponse(status=upstream.status, headers=kept)
                await answer.prepare(request)
                async for part in upstream.content.iter_any():
                    await answer.write(part)
                return answer
        except aiohttp.ClientError:
            if request.transport is not None:
                request.transport.abort()  # as a server that is gone
            raise
