"""Websockets that nobody reads any more, or that are gone: nothing of them stays in memory."""

import asyncio
import gc
from collections import Counter
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.sessions import CookieMiddleware
from django.urls import path

from dashboard.nodes.pages.infrastructure import INFRASTRUCTURE
from dashboard.shell.pages.feed import Feed
from dashboard.shell.pages.live import LiveConsumer, feeds
from grid.kube.hub import Subscription
from grid.kube.resources import NODES
from grid.runtime import Runtime
from tests.conftest import People
from tests.shell.live import Browser, cookie_of
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/live/infrastructure/"
ROUND = 10


async def test_abandoned_sockets_leave_nothing_behind(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    consumer: Any = LiveConsumer.as_asgi(page=INFRASTRUCTURE, send_seconds=0.02)
    app = CookieMiddleware(URLRouter([path("live/infrastructure/", consumer)]))
    cookie = await sync_to_async(cookie_of)(people.operator)

    async def round_of_sockets(number: int) -> None:
        cluster.put(NODES, builders.node("a", labels={"node.kubernetes.io/instance-type": f"type-{number}"}))
        fill(runtime, cluster)
        browsers = [Browser(PATH, app, cookie) for _ in range(ROUND)]
        for place, browser in enumerate(browsers):
            await asyncio.wait_for(browser.sending.wait(), 30)
            if place % 2:
                await eventually(browser.is_let_go)
            await browser.leave()

    await round_of_sockets(0)
    before = alive()
    for number in range(1, 4):
        await round_of_sockets(number)
    await eventually(lambda: not alive() - before)  # tasks that were cancelled end a moment later
    assert not len(feeds) and not runtime.hub.is_watched("nodes")


def alive() -> Counter[str]:
    """How many there are of what a socket is made of."""
    gc.collect()
    kinds = (LiveConsumer, Feed, Subscription, Browser, asyncio.Task)
    return Counter(type(tracked).__name__ for tracked in gc.get_objects() if isinstance(tracked, kinds))
