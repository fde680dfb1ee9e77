"""Tells the two origins apart by the Host header, before anything else looks at a request."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from dashboard.proxy.headers import decode, first
from dashboard.proxy.upstream import Receive, Scope, Send

Application = Callable[[Any, Any, Any], Awaitable[None]]


class TwoOrigins:
    """Requests for the workspaces' origin go to `workspaces`, all others, and the lifespan, to `dashboard`."""

    def __init__(self, *, dashboard: Application, workspaces: Application, workspace_origin: str) -> None:
        self._dashboard = dashboard
        self._workspaces = workspaces
        self._workspace_host = urlsplit(workspace_origin).netloc.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        chosen = self._dashboard
        if scope["type"] in ("http", "websocket") and self._is_for_workspaces(scope):
            chosen = self._workspaces
        await chosen(scope, receive, send)

    def _is_for_workspaces(self, scope: Scope) -> bool:
        return first(decode(scope["headers"]), "host").lower() == self._workspace_host
