"""The server's own certificate authorities and certificates, made at the first start.

The server speaks HTTPS although it listens on loopback only, because kubectl sends no credentials over plain HTTP.
Clients trust the authority through the kubeconfig. Both keys stay in the data directory, readable by its owner
only.
"""

import ipaddress
import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """The certificate that the server presents, and the authority (PEM) by which clients verify it."""

    context: ssl.SSLContext
    authority: str


def load_or_make(directory: Path) -> ServerCertificate:
    authority, chain = directory / "ca.crt", directory / "server.pem"
    if not (authority.exists() and chain.exists()):
        _make(authority, chain, datetime.now(UTC))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return ServerCertificate(context, authority.read_text())


def _make(authority: Path, chain: Path, now: datetime) -> None:
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sandbox-ca")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sandbox-apiserver")])
    ca = _signed(ca_name, ca_name, ca_key, ca_key, now, is_authority=True)
    certificate = _signed(name, ca_name, key, ca_key, now, is_authority=False)
    _write(chain, key, certificate)
    write_private(authority, ca.public_bytes(serialization.Encoding.PEM).decode())


def make_client(authority: Path, chain: Path, *, authority_name: str, name: str) -> None:
    """Write an authority, and a client certificate that it signed, with its key; the authority's own key is not kept."""
    now = datetime.now(UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, authority_name)])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    ca = _signed(ca_name, ca_name, ca_key, ca_key, now, is_authority=True)
    certificate = _signed(subject, ca_name, key, ca_key, now, is_authority=False, is_client=True)
    _write(chain, key, certificate)
    write_private(authority, ca.public_bytes(serialization.Encoding.PEM).decode())


def _write(chain: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_private(chain, (private + certificate.public_bytes(pem)).decode())


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    now: datetime,
    *,
    is_authority: bool,
    is_client: bool = False,
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(_usage(is_authority=is_authority), critical=True)
    )
    if is_client:
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    elif not is_authority:
        names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
