"""`KubeApi` over HTTP: connections, TLS, timeouts, credentials that are renewed, raw bytes for lists and watches, and no models.

Every request has a connect and a read timeout. Connecting happens at the first request and again when credentials expire
(401) or where they come from was written anew, so a transport lives as long as its process. Raises only errors of `grid.core.errors`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

import aiohttp
import msgspec
from yarl import URL

from grid.core.errors import ClusterUnavailable
from grid.core.translation import gettext as _
from grid.kube.api import Propagation
from grid.kube.credentials import Access, Credentials, host_of
from grid.kube.errors import decode_status, error_of, translated
from grid.kube.objects import RawObject
from grid.kube.resources import PODS, Resource
from grid.observability import telemetry, tracing

FIELD_MANAGER = "compute-grid"
logger = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
LIST_SECONDS = 120.0  # a page of a large list may be read from the disk first
WATCH_GRACE_SECONDS = 30.0  # the server ends a watch itself when its time is over; later than that it is dead
_RELOAD_SECONDS = 5.0  # refused credentials are read again at most this often
_LONGEST_LINE = 64 * 2**20
# Compression of lists costs both sides more than a cluster's network does.
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
_decode_object = msgspec.json.Decoder(RawObject).decode


@dataclass(frozen=True, slots=True)
class _Connection:
    """One reading of the credentials, with the session that uses them."""

    access: Access
    session: aiohttp.ClientSession
    host: str
    signature: object
    made_at: float


class Transport:
    """The base of what asks an API server: `source` says where the credentials are. Belongs to one event loop."""

    def __init__(
        self, source: Credentials, *, user_agent: str = FIELD_MANAGER, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source, self._clock = source, clock
        self._headers = _HEADERS | {"User-Agent": user_agent}
        self._connection: _Connection | None = None
        self._retired: list[aiohttp.ClientSession] = []
        self._suspect = False
        self._lock = asyncio.Lock()

    async def list_page(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
        metadata_only: bool = False,
    ) -> bytes:
        query = query_of(labelSelector=label_selector, fieldSelector=field_selector, **{"continue": continue_token})
        if limit:
            query["limit"] = str(limit)
        path = resource.path(namespace=namespace)
        accept = _METADATA_LIST if metadata_only else _HEADERS["Accept"]
        async with self._request("GET", path, query=query, read_seconds=LIST_SECONDS, accept=accept) as response:
            return await response.read()

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 300,
        initial_events: bool = False,
    ) -> AsyncIterator[bytes]:
        query = query_of(
            watch="true",
            allowWatchBookmarks="true",
            sendInitialEvents="true" if initial_events else "",
            resourceVersionMatch="NotOlderThan" if initial_events else "",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            timeoutSeconds=str(timeout_seconds),
        )
        path = resource.path(namespace=namespace)
        patience = timeout_seconds + WATCH_GRACE_SECONDS
        async with self._request("GET", path, query=query, read_seconds=patience) as response:
            async for line in _lines(response):
                yield line

    async def close(self) -> None:
        async with self._lock:
            if self._connection is not None:
                await self._connection.session.close()
                self._connection = None
            await self._close_retired()

    async def _object(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> RawObject:
        async with self._request(method, path, query=query, body=body, content_type=content_type) as response:
            answer = await response.read()
        try:
            return _decode_object(answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClusterUnavailable(_("The API server's address answers with something that is not JSON.")) from error

    async def _delete(self, path: str, *, grace_seconds: int | None, propagation: Propagation | None, uid: str) -> None:
        options: RawObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation is not None:
            options["propagationPolicy"] = propagation
        if uid:
            options["preconditions"] = {"uid": uid}
        async with self._request("DELETE", path, body=options) as response:
            await response.read()

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        read_seconds: float = 0.0,
        accept: str = _HEADERS["Accept"],
        may_be: tuple[int, ...] = (),
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield one successful response, to be read, or one of the statuses that it `may_be`. Refused credentials are read again once, and
        the request repeated."""
        connection = await self._connected()
        headers = self._headers | {"Accept": accept}
        data = None if body is None else msgspec.json.encode(body)
        if data is not None:
            headers["Content-Type"] = content_type
        ask = partial(_ask, method, path, query=query, data=data, headers=headers, seconds=read_seconds or READ_SECONDS)
        try:
            with translated(connection.host):
                response = await self._counted(method, path, ask(connection))
                if response.status == 401 and (renewed := await self._renewed(connection)) is not connection:
                    response.release()
                    connection = renewed
                    response = await self._counted(method, path, ask(connection))
                try:
                    if response.status >= 300 and response.status not in may_be:
                        raise error_of(response.status, decode_status(await response.read()), response.headers)
                    yield response
                finally:
                    # Not released to the pool when left half-way: a watch that nobody reads must end at the server too.
                    response.close() if not response.content.at_eof() else response.release()
        except ClusterUnavailable:
            self._suspect = True
            raise

    async def _counted(
        self, method: str, path: str, answer: Awaitable[aiohttp.ClientResponse]
    ) -> aiohttp.ClientResponse:
        began, code = self._clock(), 0
        try:
            with tracing.span(method, tracing.CLIENT, peer__service="kube-apiserver", url__path=path) as span:
                response = await answer
                code = response.status
                span.set("http.response.status_code", code)
            return response
        finally:
            seconds = self._clock() - began
            telemetry.asked(method, code, seconds)
            logger.debug("asked the API server method=%s path=%s code=%d seconds=%.3f", method, path, code, seconds)

    async def _connected(self) -> _Connection:
        """Return the connection, which is made at the first request, and again when requests failed and the kubeconfig was rewritten."""
        async with self._lock:
            known = self._connection
            if known is not None and self._suspect and self._source.signature() != known.signature:
                await known.session.close()
                known = None
            self._suspect = False
            self._connection = known or await self._connect()
            return self._connection

    async def _renewed(self, refused: _Connection) -> _Connection:
        """Return, after a 401, a connection with the credentials read again, or the same one when that was done a moment ago."""
        async with self._lock:
            if self._connection is refused and self._clock() - refused.made_at >= _RELOAD_SECONDS:
                self._connection = await self._connect()
                # Its watches go on with what they were admitted with, so it closes one renewal later.
                await self._close_retired()
                self._retired.append(refused.session)
            return self._connection or refused

    async def _close_retired(self) -> None:
        while self._retired:
            await self._retired.pop().close()

    async def _connect(self) -> _Connection:
        signature = self._source.signature()
        access = await self._source.load()
        host = host_of(access.server)
        connector = aiohttp.TCPConnector(ssl=access.tls or True, limit=0)
        session = aiohttp.ClientSession(connector=connector, read_bufsize=2**20)
        return _Connection(access, session, host, signature, self._clock())


async def _ask(
    method: str,
    path: str,
    connection: _Connection,
    *,
    query: dict[str, str] | None,
    data: bytes | None,
    headers: dict[str, str],
    seconds: float,
) -> aiohttp.ClientResponse:
    """Send a request once and return the answer of which the head has come; `seconds` is how long it may say nothing."""
    # Asked anew for each request: a service account's token is replaced while we run.
    if authorization := await connection.access.authorization():
        headers = headers | {"Authorization": authorization}
    try:
        return await connection.session.request(
            method,
            URL(connection.access.server + path, encoded=True),
            params=query,
            data=data,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=seconds),
            allow_redirects=False,
            proxy=connection.access.proxy,
            server_hostname=connection.access.tls_server_name,
        )
    except RuntimeError as error:
        # From uvloop, when a new socket gets the number of one that it has not let go of yet; from aiohttp, when the session was closed
        # meanwhile, because the credentials changed.
        words = _("The connection to the API server at {host} broke.", host=connection.host)
        raise ClusterUnavailable(words) from error


def query_of(**given: str) -> dict[str, str]:
    return {name: value for name, value in given.items() if value}


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield whole lines, however the network has cut them; an unfinished last one is dropped, since its end is missing."""
    begun: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            if begun:
                line = b"".join((*begun, line))
                begun, size = [], 0
            if line:
                yield line
        if rest:
            begun.append(rest)
            size += len(rest)
            if size > _LONGEST_LINE:
                raise ClusterUnavailable(_("The API server sends a watch event of more than 64 MiB."))


class HttpKubeApi(Transport):
    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> RawObject:
        return await self._object("GET", resource.path(namespace=namespace, name=name))

    async def create(
        self, resource: Resource, body: RawObject, *, namespace: str = "", dry_run: bool = False
    ) -> RawObject:
        namespace = namespace or body.get("metadata", {}).get("namespace", "")
        query = query_of(fieldManager=FIELD_MANAGER, dryRun="All" if dry_run else "")
        return await self._object("POST", resource.path(namespace=namespace), query=query, body=body)

    async def replace(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        path = resource.path(namespace=namespace, name=name)
        return await self._object("PUT", path, query=query_of(fieldManager=FIELD_MANAGER), body=body)

    async def patch(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        path, query = resource.path(namespace=namespace, name=name), query_of(fieldManager=FIELD_MANAGER)
        return await self._object("PATCH", path, query=query, body=body, content_type="application/merge-patch+json")

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
        uid: str = "",
    ) -> None:
        path = resource.path(namespace=namespace, name=name)
        await self._delete(path, grace_seconds=grace_seconds, propagation=propagation, uid=uid)

    async def evict(self, pod: str, *, namespace: str, uid: str = "") -> None:
        metadata = {"name": pod, "namespace": namespace}
        body: RawObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        if uid:
            body["deleteOptions"] = {"preconditions": {"uid": uid}}
        path = PODS.path(namespace=namespace, name=pod, subresource="eviction")
        await self._object("POST", path, query=query_of(fieldManager=FIELD_MANAGER), body=body)

    async def logs(
        self,
        pod: str,
        *,
        namespace: str,
        container: str = "",
        tail_lines: int | None = None,
        previous: bool = False,
        timestamps: bool = False,
        since: str = "",
    ) -> AsyncIterator[bytes]:
        query = query_of(
            container=container,
            tailLines="" if tail_lines is None else str(tail_lines),
            sinceTime=since,
            previous="true" if previous else "",
            timestamps="true" if timestamps else "",
        )
        path = PODS.path(namespace=namespace, name=pod, subresource="log")
        async with self._request("GET", path, query=query) as response:
            async for chunk in response.content.iter_any():
                yield chunk

    async def ask_sandbox(
        self, method: Literal["GET", "PATCH", "POST"], path: str, body: RawObject | None = None
    ) -> RawObject:
        return await self._object(method, f"/sandbox/{path}", body=body)

    async def server_text(self, path: str, *, verbose: bool = False) -> str:
        query, may_be = (query_of(verbose="true"), (500,)) if verbose else (None, ())
        async with self._request("GET", path, query=query, may_be=may_be) as response:
            text = (await response.read()).decode(errors="replace")
            # Of failing checks it tells as a plain text with status 500; any other body may hold anything.
            if response.status == 500 and not text.startswith(("[+]", "[-]")):
                raise error_of(500, decode_status(text.encode()), response.headers)
            return text
