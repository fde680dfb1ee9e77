"""external.metrics.k8s.io: how many workers each cluster's framework would like to have, for its HorizontalPodAutoscaler.

The controller writes the framework's answer as an annotation on the autoscaler; every web process answers from its watch cache, so any
replica knows the number, and none asks a framework. A number is served only while it is fresh: without a number the autoscaler says so in
its conditions and keeps its size, which is better than shrinking on old news.

Only the API server is answered, which authenticates by its front-proxy certificate; until the cluster's front-proxy authority is known,
nobody is. Kubernetes publishes that authority and the names that it signs in the ConfigMap
`kube-system/extension-apiserver-authentication`; the API server has already authorized the request behind such a certificate, so nothing
else is decided here. Certificates change while this runs: new connections are accepted with the new ones, old connections end.
"""

import asyncio
import json
import logging
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web

from grid.core.labels import KEYS
from grid.core.translation import gettext as _
from grid.kube.objects import Autoscaler, ConfigMap
from grid.kube.store import Store
from grid.metrics import external
from grid.metrics.external import GROUP, GROUP_VERSION, HEALTH_PATH, METRIC, Authority, read_demand

logger = logging.getLogger(__name__)

FRONT_PROXY_NAMESPACE, FRONT_PROXY_NAME = "kube-system", "extension-apiserver-authentication"
OLDEST = timedelta(minutes=3)
_PATH = f"/apis/{GROUP_VERSION}"
_LIST_KIND = "ExternalMetricValueList"
_REFRESH_SECONDS = 5.0
_UNKNOWN = _(
    "It is not known how the API server proves itself: the ConfigMap kube-system/extension-apiserver-authentication has not been read, "
    "or names no authority for requests with a front-proxy certificate."
)


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The front proxy's authority, in PEM, and the allowed names; no names mean that any is allowed, as in Kubernetes."""

    authority: str
    names: Collection[str]

    def accepts(self, certificate: Any) -> bool:
        """Return True when `certificate`, signed by the authority and as `ssl` describes it, is an API server's."""
        subject = [pair for part in certificate.get("subject", ()) for pair in part]
        return not self.names or any(key == "commonName" and value in self.names for key, value in subject)


def front_proxy_of(config_map: ConfigMap | None) -> FrontProxy | None:
    """Return the front proxy that the ConfigMap announces; None when it announces none that can be used."""
    data = config_map.data if config_map is not None else {}
    authority = data.get("requestheader-client-ca-file", "")
    if not authority:
        return None
    try:
        names = json.loads(data.get("requestheader-allowed-names") or "[]")
        ssl.create_default_context(cadata=authority)
    except (ValueError, ssl.SSLError):
        return None
    return FrontProxy(authority, tuple(str(name) for name in names))


def values(autoscalers: Iterable[Autoscaler], *, now: datetime) -> list[dict[str, Any]]:
    """Return the metric's items for these autoscalers; an autoscaler whose number is missing or old is left out."""
    items = []
    for autoscaler in autoscalers:
        demand = read_demand(autoscaler.metadata.annotations.get(KEYS.demand, ""))
        if demand is None or now - demand.at > OLDEST:
            continue
        labels = {external.EXECUTION_LABEL: autoscaler.metadata.labels.get(KEYS.execution, "")}
        at = demand.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items.append({"metricName": METRIC, "metricLabels": labels, "timestamp": at, "value": str(demand.wanted)})
    return items


@dataclass(eq=False)
class DemandServer:
    """The HTTPS server of the API. `host` is the name in its certificate; `front_proxy` returns how the API server is authenticated now."""

    autoscalers: Store[Autoscaler]
    front_proxy: Callable[[], FrontProxy | None]
    namespace: str
    authority: Authority
    host: str
    clock: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._known: FrontProxy | None = None
        self._renew_at = self.clock()
        self._socket: socket.socket | None = None
        self._site: web.SockSite | None = None
        app = web.Application(middlewares=[self._only_the_api_server])
        app.router.add_get(HEALTH_PATH, self._health)
        for path in _DISCOVERY:
            app.router.add_get(path, self._discover)
        app.router.add_get(f"{_PATH}/namespaces/{{namespace}}/{{metric}}", self._values)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def start(self, host: str, port: int) -> int:
        """Listen and return the port, which is chosen by the kernel when `port` is 0. Raise OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        self._socket.setblocking(False)
        await self._runner.setup()
        await self.refresh()
        port = int(self._socket.getsockname()[1])
        logger.info("external metrics are served on https://%s:%s", host, port)
        return port

    async def run(self) -> None:
        """Refresh for ever: follow the cluster's front-proxy authority, and renew the serving certificate in time."""
        while True:
            await self.refresh()
            await asyncio.sleep(_REFRESH_SECONDS)

    async def refresh(self) -> None:
        """Accept new connections with the present certificates if they have changed; do nothing before `start`."""
        known, now = self.front_proxy(), self.clock()
        if self._socket is None or (self._site is not None and known == self._known and now < self._renew_at):
            return
        context = _tls(self.authority.issue(self.host, now=now), known)
        before, self._known, self._renew_at = self._site, known, now + external.LIFETIME - external.RENEWAL
        # The listening socket stays, so that no connection is refused in between.
        self._site = web.SockSite(self._runner, self._socket.dup(), ssl_context=context)
        await self._site.start()
        if before is not None:
            await before.stop()
            self._hang_up()  # on clients that the old certificates admitted

    async def stop(self) -> None:
        self._hang_up()
        await self._runner.cleanup()
        if self._socket is not None:
            self._socket.close()

    def _hang_up(self) -> None:
        """Abort all connections: asyncio's orderly close over TLS waits half a minute for a client that keeps asking."""
        for connection in self._runner.server.connections if self._runner.server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()

    @web.middleware
    async def _only_the_api_server(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.path == HEALTH_PATH:
            return await handler(request)
        if self._known is None:
            return _refused(503, "ServiceUnavailable", _UNKNOWN)
        certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
        if not certificate:
            words = _("Only the API server is answered here: kubectl get --raw {path}", path=_PATH)
            return _refused(401, "Unauthorized", words)
        if not self._known.accepts(certificate):
            return _refused(403, "Forbidden", _("This certificate is not that of an API server."))
        return await handler(request)

    async def _health(self, request: web.Request) -> web.Response:
        """Answer whether the API server would be answered; the controller asks before it registers this server."""
        problems = [] if self._known is not None else [_UNKNOWN]
        return web.json_response({"problems": problems}, status=503 if problems else 200)

    async def _discover(self, request: web.Request) -> web.Response:
        return web.json_response(_DISCOVERY[request.path])

    async def _values(self, request: web.Request) -> web.Response:
        namespace, metric = request.match_info["namespace"], request.match_info["metric"]
        if metric != METRIC:
            words = _("There is no metric {metric} here; there is {known}.", metric=metric, known=METRIC)
            return _refused(404, "NotFound", words)
        key, _unused, wanted = request.query.get("labelSelector", "").partition("=")
        if key != external.EXECUTION_LABEL or not wanted:
            words = _("Say which cluster: labelSelector={label}=<execution id>.", label=external.EXECUTION_LABEL)
            return _refused(400, "BadRequest", words)
        autoscalers = self.autoscalers.by("execution", wanted) if namespace == self.namespace else []
        items = values(autoscalers, now=self.clock())
        return web.json_response({"kind": _LIST_KIND, "apiVersion": GROUP_VERSION, "metadata": {}, "items": items})


_VERSION = {"groupVersion": GROUP_VERSION, "version": external.VERSION}
_GROUP = {"name": GROUP, "versions": [_VERSION], "preferredVersion": _VERSION}
_RESOURCE = {"name": METRIC, "singularName": "", "namespaced": True, "kind": _LIST_KIND, "verbs": ["get"]}
_LIST = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": [_RESOURCE]}
_DISCOVERY = {
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
    f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_GROUP},
    _PATH: _LIST,
}


def _refused(code: int, reason: str, message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return web.json_response({**status, "code": code}, status=code)


def _tls(chain: str, front_proxy: FrontProxy | None) -> ssl.SSLContext:
    """Return the server's TLS context. Client certificates are optional, because the health path needs none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if front_proxy is not None:
        context.load_verify_locations(cadata=front_proxy.authority)
        context.verify_mode = ssl.CERT_OPTIONAL
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads certificates from files only
        path = Path(folder) / "tls.pem"
        path.touch(mode=0o600)
        path.write_text(chain)
        context.load_cert_chain(path)
    return context
