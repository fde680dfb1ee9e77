"""A tiny HTTP server on loopback whose answers a test decides, and a certificate of its own for such servers."""

import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Server:
    """`url` has no path; `seen` holds every request, with its body in `bodies` at the same place."""

    answer: Answer
    url: str = ""
    seen: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.seen.append(request)
        return await self.answer(request)


@asynccontextmanager
async def serving(answer: Answer, *, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    # An answer that never comes ends with whoever gave up waiting for it, not after the test.
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Certificate:
    """`server` is what a server shows itself with, `client` trusts it and nothing else."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def certificate(folder: Path, *names: str) -> Certificate:
    """Return a certificate for 127.0.0.1, localhost and these names."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    known = [x509.DNSName(name) for name in ("localhost", *names)]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([*known, x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "certificate.pem"
    path.write_bytes(secret + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return Certificate(server, ssl.create_default_context(cadata=pem.decode()))
