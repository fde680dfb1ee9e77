"""external.metrics.k8s.io: how many workers each cluster's framework would like to have, for its HorizontalPodAutoscaler.

The controller writes what it was told as an annotation on the autoscaler; every web process answers from its watch cache, so any
replica knows, and none asks a framework. A number is given only while it is fresh: without one the autoscaler says so in its
conditions and keeps the size that it has, which is better than shrinking on old news. The API tells numbers of workers by
execution id and nothing else, so whoever reaches the port may ask; TLS is there because the API server insists on it.
"""

import logging
import ssl
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from grid.kube.objects import Autoscaler
from grid.labels import KEYS
from grid.metrics.demand import EXECUTION_LABEL, METRIC, read_demand
from grid.watch.store import Store

logger = logging.getLogger(__name__)

GROUP_VERSION = "external.metrics.k8s.io/v1beta1"
OLDEST = timedelta(minutes=3)
_PATH = f"/apis/{GROUP_VERSION}"
_VALID = timedelta(days=3650)


def values(autoscalers: Iterable[Autoscaler], *, now: datetime) -> list[dict[str, Any]]:
    """The metric's items for these autoscalers; one whose number is missing or old is left out."""
    found = []
    for autoscaler in autoscalers:
        demand = read_demand(autoscaler.metadata.annotations.get(KEYS.demand, ""))
        if demand is not None and now - demand.at <= OLDEST:
            found.append(
                {
                    "metricName": METRIC,
                    "metricLabels": {EXECUTION_LABEL: autoscaler.metadata.labels.get(KEYS.execution, "")},
                    "timestamp": demand.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "value": str(demand.wanted),
                }
            )
    return found


class DemandServer:
    """The HTTPS server of the API."""

    def __init__(self, autoscalers: Store[Autoscaler], *, namespace: str, clock: Callable[[], datetime]) -> None:
        self._autoscalers = autoscalers
        self._namespace = namespace
        self._clock = clock
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; gives the port, which is another one when `port` is 0. Raises OSError."""
        app = web.Application()
        app.router.add_get("/apis", self._groups)
        app.router.add_get("/apis/external.metrics.k8s.io", self._group)
        app.router.add_get(_PATH, self._resources)
        app.router.add_get(f"{_PATH}/namespaces/{{namespace}}/{{metric}}", self._values)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=_tls())
        await site.start()
        address = self._runner.addresses[0]
        logger.info("external metrics are served on https://%s:%s", address[0], address[1])
        return int(address[1])

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _groups(self, request: web.Request) -> web.Response:
        return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]})

    async def _group(self, request: web.Request) -> web.Response:
        return web.json_response({"kind": "APIGroup", "apiVersion": "v1", **_GROUP})

    async def _resources(self, request: web.Request) -> web.Response:
        resource = {
            "name": METRIC,
            "singularName": "",
            "namespaced": True,
            "kind": "ExternalMetricValueList",
            "verbs": ["get"],
        }
        body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": [resource]}
        return web.json_response(body)

    async def _values(self, request: web.Request) -> web.Response:
        namespace, metric = request.match_info["namespace"], request.match_info["metric"]
        if metric != METRIC:
            return _refused(404, "NotFound", f"There is no metric {metric} here; there is {METRIC}.")
        key, _, wanted = request.query.get("labelSelector", "").partition("=")
        if key != EXECUTION_LABEL or not wanted:
            return _refused(400, "BadRequest", f"Say which cluster: labelSelector={EXECUTION_LABEL}=<execution id>.")
        found = self._autoscalers.by("execution", wanted) if namespace == self._namespace else []
        items = values(found, now=self._clock())
        body = {"kind": "ExternalMetricValueList", "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}
        return web.json_response(body)


_VERSION = {"groupVersion": GROUP_VERSION, "version": "v1beta1"}
_GROUP = {"name": "external.metrics.k8s.io", "versions": [_VERSION], "preferredVersion": _VERSION}


def _refused(code: int, reason: str, message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return web.json_response({**status, "code": code}, status=code)


def _tls() -> ssl.SSLContext:
    """A certificate of its own, made at each start: the APIService says insecureSkipTLSVerify, as metrics-server's does."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "compute-grid-demand")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads certificates from files only
        path = Path(folder) / "tls.pem"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context.load_cert_chain(path)
    return context
