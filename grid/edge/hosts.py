"""Admits requests to an allowed host and, for websockets, from an allowed origin.

Django checks the host of each request too, but logs the whole value with a traceback; channels' OriginValidator raises on a malformed
Origin (`http://[`).
"""

from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from django.http.request import split_domain_port, validate_host

from grid.core.translation import gettext as _
from grid.edge.refusals import Application, Receive, Refusal, Scope, Send, header, refuse

_PORTS = {"http": 80, "https": 443}


class OwnHosts:
    """Refuses other hosts and origins. `allowed` is like Django's ALLOWED_HOSTS; `origin` is that of the pages that may open websockets."""

    def __init__(self, application: Application, *, allowed: Sequence[str], origin: str) -> None:
        self._application = application
        self._allowed = allowed
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


def _parts(origin: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port, with the default port if none is given; None for what is no origin."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.path or parts.query or parts.fragment:
        return None
    return parts.scheme, parts.hostname, port or _PORTS.get(parts.scheme)
