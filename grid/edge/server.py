"""The HTTP server of a program that answers people."""

import resource
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import uvicorn

from grid.edge.connections import ConnectionLimits, Connections, matcher
from grid.edge.http import LimitedHttp
from grid.edge.refusals import Application
from grid.edge.websocket import LimitedWebSocket

_GRACE_SECONDS = 3
_USUAL = ConnectionLimits()
_OTHER_FILES = 256  # open beside connections: the database, watches, static files


def make_server(
    application: Application | str,
    *,
    message_bytes: int,
    trusted_proxies: Sequence[str] = (),
    limits: ConnectionLimits = _USUAL,
    ping_seconds: float = 20.0,
) -> uvicorn.Server:
    """Return a server for `application`, or for its import path; run it with `server.run(sockets=[...])`.

    `message_bytes` bounds a websocket's message over all fragments and after decompression. `trusted_proxies` are the addresses and
    networks whose X-Forwarded-For and X-Forwarded-Proto are believed. A websocket is pinged every `ping_seconds`, and closed when it does
    not answer for as long. Raise ValueError for a proxy that is neither an address nor a network.
    """
    limits = replace(limits, connections=min(limits.connections, _room_for_connections(limits.connections)))
    guard = Connections(limits, is_proxy=matcher(trusted_proxies))
    config = uvicorn.Config(
        application,
        http=partial(LimitedHttp, guard=guard),
        ws=partial(LimitedWebSocket, guard=guard),
        ws_max_size=message_bytes,
        ws_ping_interval=ping_seconds,
        ws_ping_timeout=ping_seconds,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return uvicorn.Server(config)


def _room_for_connections(wanted: int) -> int:
    """Raise the limit of open files as far as allowed and return how many connections it leaves room for: asyncio logs a traceback for
    each connection beyond it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, soft - _OTHER_FILES)
