"""A small asynchronous client for any Kubernetes API server, used by the controllers and the kubelets.

It speaks plain HTTP with a bearer token (the embedded cluster) and HTTPS with a token or a client certificate (any other), sends
each request once: retrying is up to the caller. Objects are plain dicts. Every failure is an `ApiError`; its status is 0 when the
server does not answer.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Self

import aiohttp
import msgspec
from yarl import URL

from grid.sandbox.client.errors import ApiError
from grid.sandbox.client.kubeconfig import ServerAccess, read_kubeconfig
from grid.sandbox.client.objects import Object

PatchKind = Literal["merge", "strategic"]
_PATCH_TYPES: dict[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_REQUEST_SECONDS = 30.0
_CONNECT_SECONDS = 5.0
# The time beyond a watch's agreed end for which its stream may be silent before the connection counts as dead.
_WATCH_SLACK_SECONDS = 15.0


class WatchEvent(NamedTuple):
    type: str
    object: Object


@dataclass(frozen=True, slots=True)
class ObjectList:
    items: list[Object]
    resource_version: str


class Api(Protocol):
    """The operations on a cluster: implemented by `Client` over HTTP, and by the tests' fake in memory."""

    async def get(self, path: str) -> Object: ...

    async def list(
        self, path: str, *, label_selector: str = "", field_selector: str = "", limit: int = 500
    ) -> ObjectList: ...

    async def create(self, path: str, body: Object) -> Object: ...

    async def update(self, path: str, body: Object) -> Object: ...

    async def patch(self, path: str, body: object, *, kind: PatchKind = "merge") -> Object: ...

    async def delete(
        self, path: str, *, grace_seconds: int | None = None, uid: str = "", propagation: str = ""
    ) -> Object: ...

    def watch(
        self,
        path: str,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 240,
    ) -> AsyncIterator[WatchEvent]: ...


class Client:
    """A client of one API server, without retries. `close` ends its connections, as does leaving its async context."""

    def __init__(self, connection: ServerAccess, *, user_agent: str = "grid-sandbox") -> None:
        self._connection = connection
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    def from_kubeconfig(cls, path: str | Path, context: str = "", *, user_agent: str = "grid-sandbox") -> Self:
        return cls(read_kubeconfig(path, context), user_agent=user_agent)

    @property
    def server(self) -> str:
        return self._connection.server

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, path: str) -> Object:
        return await self._request("GET", path)

    async def list(
        self, path: str, *, label_selector: str = "", field_selector: str = "", limit: int = 500
    ) -> ObjectList:
        """Return all pages. A continue token that expires between two pages costs one list in a single piece."""
        query = _selectors(label_selector, field_selector)
        items: list[Object] = []
        token = ""
        while True:
            page_query = {**query, "limit": str(limit)} | ({"continue": token} if token else {})
            try:
                page = await self._request("GET", path, query=page_query)
            except ApiError as error:
                if not (token and error.expired):
                    raise
                page = await self._request("GET", path, query=query)
                items = []
            items.extend(page.get("items") or ())
            token = page["metadata"].get("continue", "")
            if not token:
                return ObjectList(items, str(page["metadata"].get("resourceVersion", "")))

    async def create(self, path: str, body: Object) -> Object:
        return await self._request("POST", path, body=body)

    async def update(self, path: str, body: Object) -> Object:
        return await self._request("PUT", path, body=body)

    async def patch(self, path: str, body: object, *, kind: PatchKind = "merge") -> Object:
        return await self._request("PATCH", path, body=body, content_type=_PATCH_TYPES[kind])

    async def delete(
        self, path: str, *, grace_seconds: int | None = None, uid: str = "", propagation: str = ""
    ) -> Object:
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation:
            options["propagationPolicy"] = propagation
        return await self._request("DELETE", path, body=options)

    async def watch(
        self,
        path: str,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 240,
    ) -> AsyncIterator[WatchEvent]:
        """Yield events after that version, bookmarks included, until the server ends the stream. Raise a 410 for an expired version."""
        query = _selectors(label_selector, field_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SECONDS, sock_read=timeout_seconds + _WATCH_SLACK_SECONDS
        )
        async with self._open("GET", path, query=query, timeout=timeout) as response:
            async for line in _lines(response):
                event = msgspec.json.decode(line, type=dict[str, Any])
                if event.get("type") == "ERROR":
                    raise ApiError.from_status(event.get("object") or {})
                yield WatchEvent(str(event.get("type")), event["object"])

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> Object:
        timeout = aiohttp.ClientTimeout(total=_REQUEST_SECONDS, sock_connect=_CONNECT_SECONDS)
        async with self._open(
            method, path, query=query, body=body, content_type=content_type, timeout=timeout
        ) as response:
            content = await response.read()
        return msgspec.json.decode(content, type=dict[str, Any]) if content else {}

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        *,
        timeout: aiohttp.ClientTimeout,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield an answer below 400; raise `ApiError` for every other answer and every failure below HTTP."""
        url = URL(self._connection.server + path, encoded=True).update_query(query or {})
        headers = {"Accept": "application/json"}
        data = None
        if body is not None:
            data = msgspec.json.encode(body)
            headers["Content-Type"] = content_type
        try:
            async with self._connected().request(method, url, data=data, headers=headers, timeout=timeout) as response:
                if response.status >= 400:
                    raise ApiError.from_body(response.status, await response.read())
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            problem = str(error) or type(error).__name__
            raise ApiError(0, "Unreachable", f"{self._connection.server} did not answer: {problem}") from error
        except msgspec.DecodeError as error:
            raise ApiError(0, "Unreadable", f"{method} {path} answered something that is not JSON: {error}") from error

    def _connected(self) -> aiohttp.ClientSession:
        """Return the session, made at first use because it belongs to the running loop."""
        if self._session is None:
            tls = self._connection.ssl_context
            headers = {"User-Agent": self._user_agent}
            if self._connection.token:
                headers["Authorization"] = f"Bearer {self._connection.token}"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=tls if tls is not None else True),
                headers=headers,
                loop=asyncio.get_running_loop(),
            )
        return self._session


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    query = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in query.items() if value}


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield whole lines of any length; a last line without its end is a cut connection and is dropped."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
