"""The hub: nothing is lost, much is merged, and nobody is woken for what they do not watch."""

import asyncio
import threading
import time

import pytest

from grid.kube.hub import Hub
from grid.kube.resources import PODS
from tests.kube.following import cluster_of, following
from tests.support.builders import pod
from tests.support.virtual import passes, until, virtual_time


@virtual_time
async def test_a_subscriber_hears_of_its_topics_only() -> None:
    hub = Hub()
    with hub.subscribe({"pods", "nodes"}) as subscription:
        hub.publish("events")
        hub.publish("nodes")
        assert await subscription.changed() == {"nodes"}
        hub.publish("pods")
        hub.publish("nodes")
        hub.publish("pods")
        assert await subscription.changed() == {"pods", "nodes"}


@virtual_time
async def test_leaving_unsubscribes_and_is_watched_says_so() -> None:
    hub = Hub()
    assert not hub.is_watched("pods")
    with hub.subscribe({"pods"}):
        assert hub.is_watched("pods")
        with hub.subscribe({"pods"}):
            pass
        assert hub.is_watched("pods"), "one of two has left"
    assert not hub.is_watched("pods")
    hub.publish("pods")


@virtual_time
async def test_last_of_many_quick_changes_is_seen() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        wake_ups = 0
        seen = 0

        async def watch() -> None:
            nonlocal wake_ups, seen
            with it.hub.subscribe({"pods"}) as subscription:
                while True:
                    await subscription.changed()
                    wake_ups += 1
                    seen = len(it.store)

        looking = asyncio.create_task(watch())
        for number in range(300):
            cluster.put(PODS, pod(f"p{number}"))
            await passes(0.0005)
        await until(lambda: seen == 301, within=1)
        assert wake_ups <= 301
        looking.cancel()


async def test_publishing_from_another_thread_wakes_too() -> None:
    hub = Hub()
    with hub.subscribe({"executions"}) as subscription:
        thread = threading.Thread(target=hub.publish, args=("executions",))
        thread.start()
        async with asyncio.timeout(10):
            assert await subscription.changed() == {"executions"}
        thread.join()


@virtual_time
async def test_subscriber_that_follows_another_topic_leaves_the_former() -> None:
    hub = Hub()
    with hub.subscribe({"pods"}) as subscription:
        subscription.follow({("nodes", "pool", "gpu")})
        hub.publish("pods")
        hub.publish(("nodes", "pool", "gpu"))
        assert await subscription.changed() == {("nodes", "pool", "gpu")}
        assert not hub.is_watched("pods")
        assert hub.is_watched("nodes")
    assert not hub.is_watched("nodes")


@virtual_time
async def test_subscriber_knows_since_when_it_lacks_changes() -> None:
    hub = Hub()
    with hub.subscribe({"pods", "nodes"}) as subscription:
        subscription.mark("pods")
        assert subscription.published_since() is None, "a mark of the subscriber's own is no news"
        hub.publish("pods")
        first = time.monotonic()
        hub.publish("nodes")
        since = subscription.published_since()
        assert since is not None and since <= first
        assert subscription.published_since() is None
        hub.publish("pods")  # still dirty, and lacked again
        assert (subscription.published_since() or 0.0) >= first


@virtual_time
async def test_resting_subscriber_is_woken_once_after_its_rest() -> None:
    hub, loop = Hub(), asyncio.get_running_loop()
    with hub.subscribe({"pods", "nodes"}) as subscription:
        hub.publish("pods")
        loop.call_later(1, hub.publish, "nodes")
        assert await subscription.changed(not_before=loop.time() + 2) == {"pods", "nodes"}
        assert loop.time() == pytest.approx(2)
        loop.call_later(5, hub.publish, "pods")
        assert await subscription.changed(not_before=loop.time() + 2) == {"pods"}
        assert loop.time() == pytest.approx(7), "after its rest it is woken at once"
