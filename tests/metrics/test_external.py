"""Who vouches for the servers of the external metrics, and where they are reached."""

import base64
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from grid.metrics.external import Authority, ServiceReference

HOST = "demand.compute-grid-system.svc"


def verified(authority: Authority, chain: str, host: str) -> None:
    """As a strict client does it. Raises VerificationError."""
    (leaf,) = x509.load_pem_x509_certificates(chain.encode())
    store = Store(x509.load_pem_x509_certificates(authority.pem.encode()))
    PolicyBuilder().store(store).build_server_verifier(x509.DNSName(host)).verify(leaf, [])


def test_authority_is_identical_in_each_process() -> None:
    assert Authority("secret").bundle == Authority("secret").bundle
    assert base64.b64decode(Authority("secret").bundle).decode() == Authority("secret").pem


def test_certificate_of_a_process_is_trusted_by_another() -> None:
    chain = Authority("secret").issue(HOST, now=datetime.now(UTC))
    verified(Authority("secret"), chain, HOST)


@pytest.mark.parametrize(("secret", "host"), [("another", HOST), ("secret", "kubernetes.default.svc")])
def test_certificate_is_for_one_installation_and_name(secret: str, host: str) -> None:
    chain = Authority("secret").issue(HOST, now=datetime.now(UTC))
    with pytest.raises(VerificationError):
        verified(Authority(secret), chain, host)


def test_a_service_is_named_by_name_namespace_and_port() -> None:
    service = ServiceReference.parse("demand.compute-grid-system:443")
    assert (service.name, service.namespace, service.port) == ("demand", "compute-grid-system", 443)
    assert service.host == HOST
