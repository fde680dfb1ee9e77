"""Counts what the proxy answers, and its open websockets; each costs a few microseconds."""

import time
from collections.abc import Collection

from grid.edge.refusals import Application, Message, Receive, Scope, Send
from grid.observability import telemetry

_FORWARDED = "compute_grid.forwarded"  # of a scope, that a program answered
_CLOSED_FOR = "compute_grid.closed_for"


def answered_by_program(scope: Scope) -> None:
    """Note that a program is about to answer, so that its own errors are not taken for its absence."""
    scope[_FORWARDED] = True


def is_answered(scope: Scope) -> bool:
    return _FORWARDED in scope


def closed_for(scope: Scope, status: int) -> None:
    """Note the status that a refused websocket would have had as a page; its browser sees 403 for any."""
    scope[_CLOSED_FOR] = int(status)


class MeasuredProxy:
    """An ASGI wrapper; requests for the paths `apart`, which are probes, are not counted."""

    def __init__(self, application: Application, *, apart: Collection[str] = ()) -> None:
        self._application = application
        self._apart = frozenset(apart)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in self._apart:
            await self._application(scope, receive, send)
            return
        began, code, is_open = time.perf_counter(), 0, False

        async def counted(message: Message) -> None:
            nonlocal code, is_open
            if not code and (code := _code(scope, message)):
                telemetry.proxied(code, time.perf_counter() - began)
                if code == 101:
                    is_open = True
                    telemetry.PROXY_WEBSOCKETS.inc()
            await send(message)

        try:
            await self._application(scope, receive, counted)
        finally:
            if is_open:
                telemetry.PROXY_WEBSOCKETS.dec()


def _code(scope: Scope, message: Message) -> int:
    """Return the code that the message answers with; 0 when it is not the first of an answer."""
    if message["type"] == "websocket.accept":
        return 101
    if message["type"] == "websocket.close":
        return int(scope.get(_CLOSED_FOR, 403))
    if message["type"] not in ("http.response.start", "websocket.http.response.start"):
        return 0
    code = int(message["status"])
    return 500 if code in (502, 503, 504) and is_answered(scope) else code
