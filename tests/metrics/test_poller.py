"""The poller's rhythm, and what the store says while there is nothing to say."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grid.core.errors import ClusterUnavailable
from grid.metrics.sources import NoMetrics, UsagePoller
from grid.metrics.usage import Measured, Usage, UsageStore
from tests.support.virtual import cancelled, passes, virtual_time

USAGE = Usage(100, 200)


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
