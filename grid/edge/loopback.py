"""Refuses what reaches this process by another address than loopback, while debugging shows source and settings.

`manage.py web` refuses to listen there. Another ASGI server, started with this application, listens where it was told to.
"""

from http import HTTPStatus

from grid.core.origins import is_loopback
from grid.core.translation import gettext as _
from grid.edge.refusals import Application, Receive, Refusal, Scope, Send, refuse


class LoopbackOnly:
    """Refuses requests and websockets that came to an address that other machines can reach."""

    def __init__(self, application: Application) -> None:
        self._application = application
        sentence = _(
            "Debugging is on, which is for this machine alone. Start the server with the host 127.0.0.1, "
            "or leave GRID_DEBUG out."
        )
        self._refusal = Refusal(HTTPStatus.FORBIDDEN, "debugging", sentence)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            address = str((scope.get("server") or ("",))[0])
            if not is_loopback(address):
                await refuse(scope, send, self._refusal, value=address)
                return
        await self._application(scope, receive, send)
