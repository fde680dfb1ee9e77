"""Small ASGI wrappers: the server's lifespan, an id for each request, a delay of the answer to a refused password, and which hosts and, for
websockets, which origins are admitted.

Django checks the host of each request too, but logs the whole value with a traceback; channels' OriginValidator raises on a malformed
Origin (`http://[`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from django.http.request import split_domain_port, validate_host

from grid.core.origins import is_loopback
from grid.core.translation import gettext as _
from grid.edge.refusals import Application, Message, Receive, Refusal, Scope, Send, header, refuse
from grid.observability.logcontext import of_request

logger = logging.getLogger(__name__)

HEADER = b"x-request-id"
_FOR_THIS_MACHINE = _(
    "Debugging is on, which is for this machine alone. Start the server with the host 127.0.0.1, or leave GRID_DEBUG out."
)
_DEBUGGING = Refusal(HTTPStatus.FORBIDDEN, "debugging", _FOR_THIS_MACHINE)
_REFUSALS = (429, 503)  # locked out; too many passwords wait


@dataclass(eq=False)
class Lifespan:
    """Answers the server's lifespan messages: what the application needs starts before the first request, and stops after the last. A start
    that fails is reported to the server, which then exits with the reason instead of serving pages that cannot work."""

    application: Application
    start: Callable[[], Awaitable[object]]
    stop: Callable[[], Awaitable[object]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self.application(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                if not await self._answer(send, "startup", self.start):
                    return
            elif message["type"] == "lifespan.shutdown":
                await self._answer(send, "shutdown", self.stop)
                return

    async def _answer(self, send: Send, phase: str, act: Callable[[], Awaitable[object]]) -> bool:
        try:
            await act()
        except Exception as error:
            logger.exception("lifespan failed phase=%s", phase)
            await send({"type": f"lifespan.{phase}.failed", "message": f"{type(error).__name__}: {error}"})
            return False
        await send({"type": f"lifespan.{phase}.complete"})
        return True


@dataclass(eq=False)
class RequestIds:
    """Gives each request an id, which the lines that it logs have and, with `tells`, its answer: people can say it."""

    application: Application
    tells: bool = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.application(scope, receive, send)
            return
        with of_request(header(scope, HEADER)) as id:

            async def telling(message: Message) -> None:
                if message["type"] in ("http.response.start", "websocket.accept"):
                    message = {**message, "headers": [*message.get("headers", ()), (HEADER, id.encode())]}
                await send(message)

            await self.application(scope, receive, telling if self.tells else send)


@dataclass(eq=False)
class SlowRefusals:
    """Delays the answer to a refused password. A refusal is quick, and a program that keeps trying would otherwise take more of the server
    than one that may guess. The delay is spent on the event loop, where it costs only the connection, and `grid.edge.limits` bounds
    these."""

    application: Application
    paths: Collection[str]
    seconds: float = 2.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_late(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _REFUSALS:
                await asyncio.sleep(self.seconds)
            await send(message)

        is_slow = scope["type"] == "http" and scope["path"] in self.paths
        await self.application(scope, receive, send_late if is_slow else send)


class OwnHosts:
    """Refuses other hosts and origins. `allowed` is like Django's ALLOWED_HOSTS; `origin` is that of the pages that may open websockets."""

    def __init__(self, application: Application, *, allowed: Sequence[str], origin: str) -> None:
        self._application, self._allowed = application, allowed
        self._origin = _parts(origin)
        sentence = _(
            "This is not the address of the dashboard. Open {origin}, or ask an admin to add this host name to GRID_ALLOWED_HOSTS.",
            origin=origin,
        )
        self._unknown_host = Refusal(HTTPStatus.BAD_REQUEST, "unknown-host", sentence)
        sentence = _("Live pages are for pages of {origin} only. Open the dashboard there.", origin=origin)
        self._foreign_origin = Refusal(HTTPStatus.FORBIDDEN, "foreign-origin", sentence)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            host = header(scope, b"host")
            domain, _ = split_domain_port(host)
            if not domain or not validate_host(domain, list(self._allowed)):
                await refuse(scope, send, self._unknown_host, value=host)
                return
            if scope["type"] == "websocket" and _parts(header(scope, b"origin")) != self._origin:
                await refuse(scope, send, self._foreign_origin, value=header(scope, b"origin"))
                return
        await self._application(scope, receive, send)


class LoopbackOnly:
    """Refuses requests and websockets that came to an address that other machines can reach, while debugging shows source and settings.
    `manage.py web` refuses to listen there. Another ASGI server, started with this application, listens where it was told to."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = str((scope.get("server") or ("",))[0])
        if scope["type"] in ("http", "websocket") and not is_loopback(address):
            await refuse(scope, send, _DEBUGGING, value=address)
        else:
            await self._application(scope, receive, send)


def _parts(origin: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port, with the default port if none is given; None for what is no origin."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.path or parts.query or parts.fragment:
        return None
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}.get(parts.scheme)
