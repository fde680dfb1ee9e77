"""An ASGI wrapper that starts the runtime before the server's first request and stops it after the last."""

import logging
from collections.abc import Awaitable, Callable

from grid.edge.refusals import Application, Receive, Scope, Send

logger = logging.getLogger(__name__)


class Lifespan:
    """Answers the server's lifespan messages itself and passes http and websockets on.

    A start that fails is reported to the server, which then exits with the reason instead of serving pages that cannot work.
    """

    def __init__(
        self, application: Application, *, start: Callable[[], Awaitable[object]], stop: Callable[[], Awaitable[object]]
    ) -> None:
        self._application = application
        self._start = start
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._application(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                if not await self._answer(send, "startup", self._start):
                    return
            elif message["type"] == "lifespan.shutdown":
                await self._answer(send, "shutdown", self._stop)
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
