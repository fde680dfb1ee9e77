"""The HTTPS side of the kubelets: logs and usage, served on each node's own address by one application.

The node is the one at the address of the connection. With a token set, only its bearer is answered; without one, every client that
reaches the machine's loopback is, because the authority of an API server's client certificate is unknown here.
"""

import hmac
import logging
import ssl
from datetime import datetime, timedelta
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler

from grid.sandbox.client import Clock, Object, parse_time
from grid.sandbox.exposition import CONTENT_TYPE
from grid.sandbox.kubelet.logfiles import LogOptions, read_log
from grid.sandbox.kubelet.runtime import Attempt

logger = logging.getLogger(__name__)

_PORT = 10250
_TRUE = ("1", "true", "True")


class NoLog(Exception):
    """The log does not exist now; the message is for the person who asked."""


class ServedKubelet(Protocol):
    """The part of a kubelet that the server uses."""

    def attempt(self, namespace: str, pod: str, container: str, *, previous: bool) -> Attempt:
        """Return the attempt whose log is wanted. Raise `NoLog` or `LookupError`."""
        ...

    def has_ended(self, attempt: Attempt) -> bool: ...

    def summary(self) -> Object: ...

    def metrics(self) -> str: ...

    def cadvisor(self) -> str: ...


class NodeServer:
    """One application for all nodes of a process."""

    def __init__(self, tls: ssl.SSLContext, clock: Clock, *, token: str = "") -> None:
        self._tls = tls
        self._clock = clock
        self._token = token
        self._nodes: dict[str, ServedKubelet] = {}
        self._sites: dict[str, web.TCPSite] = {}
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(middlewares=[self._authenticated])
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        app.router.add_get("/stats/summary", self._summary)
        app.router.add_get("/metrics/resource", self._metrics)
        app.router.add_get("/metrics/cadvisor", self._cadvisor)
        app.router.add_get("/healthz", self._healthy)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await self._runner.setup()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def add(self, address: str, node: ServedKubelet) -> int:
        """Listen on a node's address; return the port, which is another than the usual one if that is taken."""
        if self._runner is None:
            raise RuntimeError("the server is not started")
        self._nodes[address] = node
        for port in (_PORT, 0):
            site = web.TCPSite(self._runner, address, port, ssl_context=self._tls)
            try:
                await site.start()
            except OSError as error:
                if port == 0:
                    raise
                logger.info("port %d is taken on %s (%s); another is used", port, address, error.strerror)
                continue
            self._sites[address] = site
            return port or self._chosen_port(address)
        raise AssertionError("unreachable")

    def _chosen_port(self, address: str) -> int:
        runner = self._runner
        ports = [name[1] for name in (runner.addresses if runner is not None else ()) if name[0] == address]
        return int(ports[-1])

    async def remove(self, address: str) -> None:
        self._nodes.pop(address, None)
        site = self._sites.pop(address, None)
        if site is not None:
            await site.stop()

    @web.middleware
    async def _authenticated(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        if self._token and not hmac.compare_digest(given.encode(), self._token.encode()):
            return web.Response(status=401, text="Unauthorized")
        return await handler(request)

    def _node(self, request: web.Request) -> ServedKubelet:
        name = request.transport.get_extra_info("sockname") if request.transport is not None else None
        node = self._nodes.get(name[0]) if name else None
        if node is None:
            raise web.HTTPServiceUnavailable(text="this node is stopping")
        return node

    async def _healthy(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def _summary(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._node(request).summary())

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=self._node(request).metrics())

    async def _cadvisor(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=self._node(request).cadvisor(), headers={"Content-Type": CONTENT_TYPE})

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        node, wanted = self._node(request), request.match_info
        try:
            options = log_options(dict(request.query), self._clock.now())
            previous = request.query.get("previous") in _TRUE
            attempt = node.attempt(wanted["namespace"], wanted["pod"], wanted["container"], previous=previous)
        except LookupError as error:
            return web.Response(status=404, text=str(error.args[0]))
        except (NoLog, ValueError) as error:
            return web.Response(status=400, text=str(error))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        try:
            async for piece in read_log(attempt.directory / "log", options, lambda: node.has_ended(attempt)):
                await response.write(piece)
            await response.write_eof()
        except ConnectionResetError:
            logger.debug("the reader of a log went away")
        return response


def log_options(query: dict[str, str], now: datetime) -> LogOptions:
    """Parse the options of a log request. Raise ValueError with a message for the client."""
    since = parse_time(query.get("sinceTime")) if query.get("sinceTime") else None
    seconds = _number(query, "sinceSeconds")
    if seconds is not None:
        since = now - timedelta(seconds=seconds)
    return LogOptions(
        follow=query.get("follow") in _TRUE,
        timestamps=query.get("timestamps") in _TRUE,
        tail_lines=_number(query, "tailLines"),
        since=since,
        limit_bytes=_number(query, "limitBytes"),
    )


def _number(query: dict[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    if not text.isdigit():
        raise ValueError(f"{name} must be a number, not “{text}”")
    return int(text)
