"""What forwarding needs to know of one request's way to the pod, and the shapes of ASGI."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from dashboard.proxy.headers import Headers
from dashboard.proxy.placing import ANYWHERE, Place

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Route:
    """`path` is raw (still encoded) with its query, as the program is asked for it; `token` is what the pod's server was told to expect.
    What stays open asks `still_allowed` every `recheck_seconds`."""

    session: aiohttp.ClientSession
    netloc: str
    path: str
    headers: Headers
    token: str
    scheme: str
    client: str
    still_allowed: Callable[[], Awaitable[bool]]
    recheck_seconds: float
    place: Place = ANYWHERE

    async def until_refused(self) -> None:
        """Returns when the right to it has ended: a logout, a member who left the project, an execution that ended."""
        while await self.still_allowed():  # noqa: ASYNC110 - what changes is in the database
            await asyncio.sleep(self.recheck_seconds)
