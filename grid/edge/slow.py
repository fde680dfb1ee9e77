"""An ASGI wrapper that delays the answer to a refused password.

A refusal is quick, and a program that keeps trying would otherwise take more of the server than one that may guess. The delay is spent on
the event loop, where it costs only the connection, and `grid.edge.limits` bounds these.
"""

import asyncio
from collections.abc import Collection

from grid.edge.refusals import Application, Message, Receive, Scope, Send

_REFUSALS = (429, 503)  # locked out; too many passwords wait


class SlowRefusals:
    def __init__(self, application: Application, *, paths: Collection[str], seconds: float = 2.0) -> None:
        self._application = application
        self._paths = frozenset(paths)
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_late(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _REFUSALS:
                await asyncio.sleep(self._seconds)
            await send(message)

        is_slow = scope["type"] == "http" and scope["path"] in self._paths
        await self._application(scope, receive, send_late if is_slow else send)
