"""The route of one request to its pod, and the types of ASGI."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from dashboard.proxy.headers import Headers, to_upstream
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

    def headers_upstream(self) -> Headers:
        """Return the headers of the request to the pod."""
        return to_upstream(
            self.headers,
            token=self.token,
            scheme=self.scheme,
            client=self.client,
            path_prefix=self.path_prefix,
            for_front=self.for_front,
        )


Tasks = list[asyncio.Future[Any]]


async def raced(*ways: Awaitable[Any]) -> tuple[Tasks, Tasks]:
    """Run these until one has ended, and cancel the others; return what had ended by itself, and all of them in their order."""
    tasks: Tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return list(done), tasks
