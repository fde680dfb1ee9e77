"""The serving certificates of this machine's kubelets and of its metrics server: self-signed, made once, kept.

By default API servers do not check a kubelet's certificate; one that does can pin this file.
"""

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 3650
_RENEW_DAYS = 30


def serving_context(directory: Path, name: str = "kubelet", host: str = "compute-grid-kubelet") -> ssl.SSLContext:
    """Return a TLS context with the certificate in NAME.crt and NAME.key for a host.

    The certificate is made if it is missing, unusable or about to expire.
    """
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    if not _usable(certificate, key):
        _make(certificate, key, host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _usable(certificate: Path, key: Path) -> bool:
    try:
        parsed = x509.load_pem_x509_certificate(certificate.read_bytes())
        private = serialization.load_pem_private_key(key.read_bytes(), None)
    except (OSError, ValueError):
        return False
    left = parsed.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return left.days > _RENEW_DAYS and parsed.public_key() == private.public_key()


def _make(certificate: Path, key: Path, host: str) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(private, hashes.SHA256())
    )
    key.parent.mkdir(parents=True, exist_ok=True)
    key.unlink(missing_ok=True)
    key.touch(mode=0o600)
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
