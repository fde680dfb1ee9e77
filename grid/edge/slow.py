"""An ASGI wrapper that lets whoever is refused a try at a password wait.

A refusal is quick, and a program that tries on at once would otherwise take more of the server than one that is let guess. It
waits on the event loop, where that costs nothing but the connection, and `grid.edge.limits` bounds these.
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
