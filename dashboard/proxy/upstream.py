"""The route of one request to its pod, and the types of ASGI."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from dashboard.proxy.headers import Headers
from dashboard.proxy.path_prefix import NO_PREFIX, PathPrefix

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AccessEnded(Exception):
    """Raised when the right to an execution ends before its program has responded."""


@dataclass(frozen=True, slots=True)
class Route:
    """One request's route to the pod. `path` is raw (still encoded), with its query, as requested from the program; `token` is what the
    pod's server expects, `for_front` the headers that its front expects. `ended` is set when the right to it ends: by a logout, a lost
    membership, the end of the execution. `used` is called when the user is active."""

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
    for_front: Headers = field(default_factory=list)
