"""Gives each request an id: the lines that it logs have it, and its answer, so that a person can say it to whoever reads the log."""

from grid.edge.refusals import Application, Message, Receive, Scope, Send, header
from grid.observability.logcontext import of_request

HEADER = b"x-request-id"


class RequestIds:
    """An ASGI wrapper. With `tells` the answer has the id in a header; a program behind the proxy has its own."""

    def __init__(self, application: Application, *, tells: bool = True) -> None:
        self._application = application
        self._tells = tells

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        with of_request(header(scope, HEADER)) as id:

            async def telling(message: Message) -> None:
                if message["type"] in ("http.response.start", "websocket.accept"):
                    message = {**message, "headers": [*message.get("headers", ()), (HEADER, id.encode())]}
                await send(message)

            await self._application(scope, receive, telling if self._tells else send)
