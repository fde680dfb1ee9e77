"""What is measured of nodes: the poller's rhythm, the last half hour in bounded memory, and who vouches for the external metrics."""

import asyncio
import base64
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from grid.core.errors import ClusterUnavailable
from grid.metrics.external import Authority, ServiceReference
from grid.metrics.sources import NoMetrics, UsagePoller
from grid.metrics.usage import KEPT_MINUTES, Measured, RecentUsage, Usage, UsageSample, UsageStore
from tests.support.virtual import cancelled, passes, virtual_time

USAGE = Usage(100, 200)
GIB = 2**30
HOST = "demand.compute-grid-system.svc"


class Scripted:
    """A source that answers, or fails, as told."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None

    async def measure(self) -> Measured:
        self.calls += 1
        if self.error:
            raise self.error
        return Measured({"n1": USAGE}, {"ns/p": USAGE})


@asynccontextmanager
async def polling(source: Scripted) -> AsyncIterator[tuple[UsageStore, list[str]]]:
    store, published = UsageStore(asyncio.get_running_loop().time), list[str]()
    task = asyncio.create_task(UsagePoller(source, store, published.append, rng=random.Random(1)).run())
    try:
        yield store, published
    finally:
        assert not task.done()
        await cancelled(task)


@virtual_time
async def test_usage_is_measured_about_every_fifteen_seconds() -> None:
    source = Scripted()
    async with polling(source) as (store, published):
        await passes(600)
        assert 36 <= source.calls <= 45
        assert len(published) == source.calls
        assert (store.node("n1"), store.pod("ns/p"), store.unavailable) == (USAGE, USAGE, "")
        assert store.node("other") is None


@virtual_time
async def test_absent_metrics_are_asked_for_seldom_and_said_once() -> None:
    source = Scripted()
    source.error = NoMetrics("There is no metrics-server.")
    async with polling(source) as (store, published):
        await passes(3600)
        assert source.calls <= 14
        assert store.unavailable == "There is no metrics-server."
        assert len(published) == 1
        source.error = None
        await passes(400)
        assert store.node("n1") == USAGE


@virtual_time
async def test_usage_survives_short_outage_but_not_a_long_one() -> None:
    source = Scripted()
    async with polling(source) as (store, _):
        await passes(1)
        source.error = ClusterUnavailable("The server does not answer.")
        await passes(60)
        assert store.node("n1") == USAGE
        assert "does not answer" in store.unavailable
        await passes(120)
        assert store.node("n1") is None
        source.error = None
        await passes(20)
        assert (store.node("n1"), store.unavailable) == (USAGE, "")


@virtual_time
async def test_a_fault_of_our_own_does_not_end_it() -> None:
    source = Scripted()
    source.error = LookupError("unforeseen")
    async with polling(source) as (store, _):
        await passes(1)
        assert "was not understood; the log says more" in store.unavailable
        source.error = None
        await passes(20)
        assert store.unavailable == ""


@pytest.mark.parametrize(
    ("rounds", "samples"),
    [
        ([(7, 200, GIB), (7, 900, GIB), (7, 100, 2 * GIB), (8, 300, 0)], [(7, 900, 2048), (8, 300, 0)]),
        ([(100, 1, GIB), (101, 1, GIB), (105, 1, GIB)], [(100, 1, 1024), (101, 1, 1024), (105, 1, 1024)]),
        ([(50, 5, GIB), (20, 7, GIB)], [(50, 7, 1024)]),
        ([(1, 2**40, 2**80)], [(1, 2**32 - 2, 2**32 - 2)]),
    ],
    ids=["the highest of a minute", "a gap", "a clock that was set back", "beyond capacity"],
)
def test_each_measured_minute_has_a_sample(
    rounds: list[tuple[int, int, int]], samples: list[tuple[int, int, int]]
) -> None:
    recent = RecentUsage()
    for minute, cpu, memory in rounds:
        recent.add(minute, {"n1": Usage(cpu, memory)})
    assert recent.of("n1") == samples


def test_usage_older_than_half_an_hour_is_dropped() -> None:
    recent = RecentUsage()
    for minute in range(1000, 1100):
        recent.add(minute, {"n1": Usage(minute, GIB)})
    assert recent.of("n1") == [UsageSample(minute, minute, 1024) for minute in range(1100 - KEPT_MINUTES, 1100)]
    recent.add(5000, {"n2": Usage(1, GIB)})
    assert recent.of("n1") == []


def test_changing_nodes_take_bounded_memory() -> None:
    recent = RecentUsage()
    for minute in range(1, 500):
        recent.add(minute, {f"node-{minute}": Usage(1, GIB)})
    held = recent._nodes
    assert len(held) == KEPT_MINUTES
    assert all(sys.getsizeof(samples) < 400 for samples in held.values())


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
