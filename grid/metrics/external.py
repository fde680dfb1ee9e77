"""external.metrics.k8s.io as this installation serves it: its name, its Service, its metric, and the authority that signs its certificates.

The authority's key is derived from the installation's secret key. So each web process signs a serving certificate of its own, and the
controller knows the CA bundle for all of them, without a Secret that has to be distributed and renewed. The metric's number is written as
an annotation on the HorizontalPodAutoscaler, by the controller, and read there by the web processes (`grid.runtime.demand`).
"""

import base64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Annotated

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from grid.core.decoding import prepared

GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
METRIC = "compute_grid_wanted_workers"
EXECUTION_LABEL = "execution-id"  # a label of the metric, with the cluster's execution id
HEALTH_PATH = "/healthz"  # needs no client certificate and returns no metrics
LIFETIME = timedelta(days=90)  # of a serving certificate
RENEWAL = timedelta(days=30)  # before its end

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of the curve P-256
_SUBJECT = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "compute-grid-external-metrics")])
_PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """The Service through which the API server reaches the web processes."""

    name: str
    namespace: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "ServiceReference":
        """Parse NAME.NAMESPACE:PORT, whose format a system check has verified."""
        place, _, port = text.partition(":")
        name, _, namespace = place.partition(".")
        return cls(name, namespace, int(port))

    @property
    def host(self) -> str:
        """The Service's name in the cluster, which the API server expects in the certificate."""
        return f"{self.name}.{self.namespace}.svc"


class Authority:
    """Signs the certificates of one installation's servers; it is identical, to the last byte, in each of its processes."""

    def __init__(self, secret: str) -> None:
        derive = HKDF(hashes.SHA256(), length=48, salt=None, info=b"compute-grid external.metrics.k8s.io authority")
        # 128 bits more than the order has, so that the remainder is not biased (FIPS 186-5, A.2.1).
        scalar = int.from_bytes(derive.derive(secret.encode()), "big") % (_ORDER - 1) + 1
        self._key = ec.derive_private_key(scalar, ec.SECP256R1())

    @cached_property
    def pem(self) -> str:
        """The authority's own certificate. It does not depend on when or where it is made, so registering it again changes nothing."""
        first, last = (datetime(year, 1, 1, tzinfo=UTC) for year in (2024, 2124))
        builder = _builder(_SUBJECT, self._key, self._key, signs=True).serial_number(1)
        builder = builder.not_valid_before(first).not_valid_after(last)
        return builder.sign(self._key, hashes.SHA256(), ecdsa_deterministic=True).public_bytes(_PEM).decode()

    @property
    def bundle(self) -> str:
        """The caBundle of an APIService, in base64."""
        return base64.b64encode(self.pem.encode()).decode()

    def issue(self, host: str, *, now: datetime) -> str:
        """Return a new key and a certificate for a server named `host`, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "compute-grid-web")])
        builder = _builder(name, key, self._key, signs=False).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + LIFETIME)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(_PEM)
        private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return (private + certificate).decode()


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey, *, signs: bool
) -> x509.CertificateBuilder:
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_SUBJECT)
        .public_key(key.public_key())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=signs, path_length=0 if signs else None), critical=True)
        .add_extension(usage, critical=True)
    )


class Demand(msgspec.Struct, frozen=True):
    """The number of workers that a framework would like to have, and when it said so."""

    wanted: Annotated[int, msgspec.Meta(ge=0, le=2**31)]  # as far as Kubernetes counts replicas
    at: Annotated[datetime, msgspec.Meta(tz=True)]


def write_demand(demand: Demand) -> str:
    return msgspec.json.encode(demand).decode()


def read_demand(text: str) -> Demand | None:
    try:
        return msgspec.json.decode(text, type=prepared(Demand))
    except (msgspec.DecodeError, UnicodeError):
        return None
