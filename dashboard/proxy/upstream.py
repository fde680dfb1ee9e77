"""What forwarding needs to know of one request's way to the pod, and the shapes of ASGI."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from dashboard.proxy.headers import Headers
from dashboard.proxy.path_prefix import NO_PREFIX, PathPrefix

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AccessEnded(Exception):
    """The right to it has ended before the program has answered."""


@dataclass(frozen=True, slots=True)
class Route:
    """`path` is raw (still encoded) with its query, as the program is asked for it; `token` is what the pod's server was told to expect.
    `ended` is set when the right to it has ended: a logout, a member who left the project, an execution that ended. `used` is
    called when the person does something."""

    session: aiohttp.ClientSession
    netloc: str
    path: str
    headers: Headers
    token: str
    scheme: str
    client: str
    ended: asyncio.Event
    used: Callable[[], None]
    path_prefix: PathPrefix = NO_PREFIX
