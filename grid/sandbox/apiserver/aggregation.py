"""The aggregation layer: APIs that other programs serve, under this server's address, as their APIService objects say.

A request to such a group and version is passed on over HTTPS to the Service that the APIService names, with the caller's name in
headers and this server's own certificate; the answer comes back as it is. Requests are passed on only while the API is
Available, which is checked regularly, after each change of an APIService or a Service, and after each request that did not arrive.
"""

import asyncio
import base64
import logging
import ssl
from collections.abc import Mapping, Sequence

import aiohttp
import msgspec
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from grid.core.decoding import prepared
from grid.sandbox.apiserver import discovery
from grid.sandbox.apiserver.bodies import parse_bool
from grid.sandbox.apiserver.frontproxy import PREFIX, FrontProxyCertificate, identity_headers
from grid.sandbox.apiserver.furnishing import METRICS_API, furnish_metrics_api
from grid.sandbox.apiserver.identity import Identity
from grid.sandbox.apiserver.kinds import Object, has_group, stored_kinds
from grid.sandbox.apiserver.registry import Registry, timestamp
from grid.sandbox.apiserver.status import Failure
from grid.sandbox.apiserver.store import StoreEvent
from grid.sandbox.serviceproxy.endpoints import backends_of, cluster_ip

log = logging.getLogger(__name__)

API_SERVICES = "apiservices.apiregistration.k8s.io"
_LOOK_SECONDS = 5.0
_CONNECT_SECONDS = 5.0
_LONGEST_SECONDS = 60.0
# These headers belong to one connection, not to the request.
_HOP_BY_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
_OURSELVES = Identity("system:kube-aggregator", ("system:masters",))
_NOT_PASSED_ON = _HOP_BY_HOP | {"authorization", "content-length", "host"}


class _Resources(msgspec.Struct):
    """The part of an APIResourceList that discovery needs."""

    resources: list[Object] = []


class _Unavailable(Exception):
    """An API cannot be reached; `reason` and the message are those of its Available condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Aggregator:
    """The aggregator passes requests on to the programs that serve other APIs, and checks these while `run` runs."""

    def __init__(self, registry: Registry, front_proxy: FrontProxyCertificate) -> None:
        self._registry = registry
        self._store = registry.store
        self._front_proxy = front_proxy
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[tuple[str, bool], ssl.SSLContext] = {}
        self._resources: dict[tuple[str, str], Sequence[Object]] = {}
        self._wake = asyncio.Event()
        for resource in (API_SERVICES, "services"):
            self._store.listen(resource, self._changed)

    def _changed(self, change: StoreEvent) -> None:
        before = change.before.obj if change.before is not None else {}
        now = change.now.obj if change.now is not None else {}
        if before.get("spec") != now.get("spec"):
            self._wake.set()
        if change.now is None and before.get("metadata", {}).get("name") == METRICS_API:
            asyncio.get_running_loop().call_soon(furnish_metrics_api, self._registry)

    # Lookup

    def responsible(self, path: str) -> Object | None:
        """Return the APIService for a request's path, or None for what this server serves itself."""
        match path.strip("/").split("/"):
            case ["apis", group, version, *_] if not has_group(group):
                record = self._store.get(API_SERVICES, f"{version}.{group}")
                return record.obj if record is not None and record.obj["spec"].get("service") else None
        return None

    def groups(self) -> Mapping[str, Sequence[str]]:
        """Return the versions of each group, the preferred version first."""
        versions: dict[str, list[str]] = {}
        for served in self.served():
            versions.setdefault(served.group, []).append(served.version)
        return versions

    def served(self) -> list[discovery.ServedVersion]:
        """Return the groups and versions that other programs serve; a group of this server's own is never among them."""
        specs = [record.obj["spec"] for record in self._store.records(API_SERVICES)]
        wanted = [spec for spec in specs if spec.get("service") and not has_group(spec["group"])]
        return [
            discovery.ServedVersion(
                spec["group"], spec["version"], self._resources.get((spec["group"], spec["version"]))
            )
            for spec in sorted(wanted, key=lambda spec: (spec["group"], -spec["versionPriority"]))
        ]

    # Passing on

    async def forward(self, request: web.Request, identity: Identity, api: Object) -> web.StreamResponse:
        if not _is_available(api):
            return web.Response(status=503, text="service unavailable\n")
        watching = parse_bool(request.query, "watch")
        limit = aiohttp.ClientTimeout(total=None if watching else _LONGEST_SECONDS, sock_connect=_CONNECT_SECONDS)
        headers = CIMultiDict(
            (name, value)
            for name, value in request.headers.items()
            if name.lower() not in _NOT_PASSED_ON and not name.lower().startswith(PREFIX.lower())
        )
        headers.extend(identity_headers(identity))
        try:
            place = self._place(api)
            async with self._client().request(
                request.method,
                URL(f"https://{place}{request.raw_path}", encoded=True),
                headers=headers,
                data=request.content if request.can_read_body else None,
                ssl=self._context(api),
                server_hostname=_server_name(api),
                allow_redirects=False,
                timeout=limit,
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            ) as answer:
                return await _hand_back(request, answer)
        except (_Unavailable, aiohttp.ClientConnectorError, aiohttp.ServerDisconnectedError, TimeoutError) as error:
            self._wake.set()
            text = f"error trying to reach service: {error or 'it took too long'}\n"
            return web.Response(status=503, text=text)

    def _place(self, api: Object) -> str:
        """Return host and port behind the Service that the API names. Raise `_Unavailable` when there are none."""
        wanted = api["spec"]["service"]
        namespace, name, port = wanted["namespace"], wanted["name"], int(wanted.get("port") or 443)
        where = f'service/{name} in "{namespace}"'
        record = self._store.get("services", f"{namespace}/{name}")
        if record is None:
            raise _Unavailable("ServiceNotFound", f"{where} is not present")
        service = record.obj
        if service["spec"].get("type") == "ExternalName":
            return f"{service['spec']['externalName']}:{port}"
        if not any(item["port"] == port for item in service["spec"].get("ports") or ()):
            raise _Unavailable("ServicePortError", f"{where} is not listening on port {port}")
        pods = [record.obj for record in self._store.records("pods", prefix=f"{namespace}/")]
        backends = backends_of(service, pods).get(port) if cluster_ip(service) else None
        if not backends:
            raise _Unavailable("MissingEndpoints", f"no pod is ready behind {where} on port {port}")
        return f"{backends[0].address}:{backends[0].port}"

    def _context(self, api: Object) -> ssl.SSLContext:
        spec = api["spec"]
        key = (spec.get("caBundle") or "", bool(spec.get("insecureSkipTLSVerify")))
        if key not in self._contexts:
            try:
                bundle = base64.b64decode(key[0]).decode()
                self._contexts[key] = self._front_proxy.context(bundle, trusting=key[1])
            except (ValueError, ssl.SSLError) as error:
                raise _Unavailable("FailedDiscoveryCheck", f"spec.caBundle holds no certificates: {error}") from error
        return self._contexts[key]

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
        return self._session

    # Availability

    async def run(self) -> None:
        """Check every API regularly, until cancelled."""
        try:
            while True:
                self._wake.clear()
                apis = [record.obj for record in self._store.records(API_SERVICES)]
                await asyncio.gather(*(self._look(api) for api in apis))
                try:
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            if self._session is not None:
                await self._session.close()

    async def _look(self, api: Object) -> None:
        name = api["metadata"]["name"]
        try:
            if not api["spec"].get("service"):
                reason, message = "Local", "Local APIServices are always available"
            else:
                await self._discover(api)
                reason, message = "Passed", "all checks passed"
            status = "True"
        except _Unavailable as problem:
            status, reason, message = "False", problem.reason, str(problem)
        except Exception:
            log.exception("api service name=%s could not be looked at", name)
            return
        try:
            self._tell(name, {"type": "Available", "status": status, "reason": reason, "message": message})
        except Failure as failure:
            log.debug("api service name=%s went meanwhile: %s", name, failure)

    async def _discover(self, api: Object) -> None:
        """Ask the API for its resources, as a check and for discovery. Raise `_Unavailable` when it fails."""
        spec = api["spec"]
        url = f"https://{self._place(api)}/apis/{spec['group']}/{spec['version']}"
        limit = aiohttp.ClientTimeout(total=_CONNECT_SECONDS)
        headers = [("Accept", "application/json"), ("Accept-Encoding", "identity"), *identity_headers(_OURSELVES)]
        try:
            async with self._client().get(
                url,
                headers=headers,
                ssl=self._context(api),
                server_hostname=_server_name(api),
                timeout=limit,
                allow_redirects=False,
            ) as answer:
                if 200 <= answer.status < 300:
                    resource_list = msgspec.json.decode(await answer.read(), type=prepared(_Resources))
                    self._resources[spec["group"], spec["version"]] = resource_list.resources
                    return
                problem = f"bad status from {url}: {answer.status}"
        except msgspec.DecodeError as error:
            problem = f"{url} answered no list of resources: {error}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            problem = f'Get "{url}": {error or "it took too long"}'
        self._resources.pop((spec["group"], spec["version"]), None)
        raise _Unavailable("FailedDiscoveryCheck", f"failing or missing response from {url}: {problem}")

    def _tell(self, name: str, condition: Object) -> None:
        kind = stored_kinds()[API_SERVICES]

        def write(obj: Object) -> Object:
            known = _available(obj)
            same = known.get("status") == condition["status"]
            since = known.get("lastTransitionTime") if same else timestamp(self._registry.clock())
            return {**obj, "status": {"conditions": [{**condition, "lastTransitionTime": since}]}}

        self._registry.update(kind, name, write, subresource="status")


def _available(api: Object) -> Object:
    conditions = (api.get("status") or {}).get("conditions") or ()
    return next((dict(item) for item in conditions if item["type"] == "Available"), {})


def _is_available(api: Object) -> bool:
    return _available(api).get("status") == "True"


def _server_name(api: Object) -> str:
    """Return the name that the serving certificate must have."""
    service = api["spec"]["service"]
    return f"{service['name']}.{service['namespace']}.svc"


async def _hand_back(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason)
    for name, value in answer.headers.items():
        if name.lower() not in _HOP_BY_HOP:
            response.headers.add(name, value)
    await response.prepare(request)
    async for piece in answer.content.iter_any():
        await response.write(piece)
    await response.write_eof()
    return response
