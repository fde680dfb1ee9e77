"""An API that the tests serve themselves, over HTTPS on this machine, for the server under test to pass requests on to.

Its resources: `echoes` answer with what arrived, and the external metric `wanted` has the values that the test sets.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.contract.client import Object


@dataclass
class OwnApi:
    """`bundle` is what an APIService has to say for its certificate to be believed."""

    group: str
    version: str
    port: int = 0
    bundle: str = ""
    values: Sequence[str] = ()
    asked: list[str] = field(default_factory=list)

    async def resources(self, request: web.Request) -> web.Response:
        verbs = ["get", "list", "create"]
        echoes = {"name": "echoes", "singularName": "", "namespaced": True, "kind": "Echo", "verbs": verbs}
        body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{self.group}/{self.version}"}
        return web.json_response(body | {"resources": [echoes]})

    async def echo(self, request: web.Request) -> web.Response:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        body: Object = {
            "kind": "Echo",
            "method": request.method,
            "path": request.raw_path,
            "headers": [[name.lower(), value] for name, value in request.headers.items()],
            "body": (await request.read()).decode(),
            "subject": [list(pair) for part in (certificate or {}).get("subject", ()) for pair in part],
        }
        return web.json_response(body, status=201 if request.method == "POST" else 200, headers={"X-Own": "yes"})

    async def metric(self, request: web.Request) -> web.Response:
        self.asked.append(request.query.get("labelSelector", ""))
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {"metricName": "wanted", "metricLabels": {}, "timestamp": now, "value": value} for value in self.values
        ]
        head = {"kind": "ExternalMetricValueList", "apiVersion": f"{self.group}/{self.version}", "metadata": {}}
        return web.json_response({**head, "items": items})


@asynccontextmanager
async def own_api(group: str, version: str, name: str, folder: Path, *, client_authority: str) -> AsyncIterator[OwnApi]:
    """Serves until the block ends; `name` is that in the certificate, `client_authority` signs who may say who asks."""
    api = OwnApi(group, version)
    app, root = web.Application(), f"/apis/{group}/{version}"
    app.router.add_get(root, api.resources)
    app.router.add_get(f"{root}/namespaces/{{namespace}}/wanted", api.metric)
    app.router.add_route("*", f"{root}/namespaces/{{namespace}}/echoes{{rest:.*}}", api.echo)
    context, certificate = _tls(name, folder)
    context.load_verify_locations(cadata=client_authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    api.bundle = base64.b64encode(certificate).decode()
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        api.port = int(runner.addresses[0][1])
        yield api
    finally:
        await hang_up(runner)
        await runner.cleanup()


async def hang_up(runner: web.AppRunner) -> None:
    """A polite TLS goodbye outlives the test's event loop; a server that goes away may just be gone.

    A connection in its handshake is known to asyncio's server alone, which tells nobody; it soon is one, or none.
    """
    listening: list[Any] = [site._server for site in runner.sites]
    for site in list(runner.sites):
        await site.stop()
    async with asyncio.timeout(10):
        while any(server._active_count for server in listening):
            for connection in runner.server.connections if runner.server is not None else ():
                if connection.transport is not None:
                    connection.transport.abort()
            await asyncio.sleep(0.01)


def _tls(name: str, folder: Path) -> tuple[ssl.SSLContext, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "contract-tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "tls.pem"
    path.touch(mode=0o600)
    path.write_bytes(private + pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, pem


def external_name(name: str) -> Object:
    """The Service by which an API server reaches programs of its own machine."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def api_service(api: OwnApi, namespace: str, service_name: str, **spec: object) -> Object:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{api.version}.{api.group}"},
        "spec": {
            "group": api.group,
            "version": api.version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": namespace, "name": service_name, "port": api.port},
            **spec,
        },
    }
