"""The websocket of a live page: what it sends, how often, to whom, and when it ends; of an abandoned one nothing stays in memory."""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.sessions import CookieMiddleware
from django.db import OperationalError
from django.http import QueryDict
from django.urls import path
from django.utils import timezone

from dashboard.executions.pages.executions import EXECUTIONS
from dashboard.nodes.pages.infrastructure import INFRASTRUCTURE
from dashboard.shell.access import Role, Viewer
from dashboard.shell.pages.feed import Feed, Feeds, Pace, rendered
from dashboard.shell.pages.live import FORBIDDEN, INTERNAL_ERROR, LOGGED_OUT, OTHER_ROLE, LiveConsumer, feeds
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.session_watch import SessionWatch
from dashboard.shell.viewmodels.live import Fragment
from grid.accounts.sessions import stored_key
from grid.kube.hub import Subscription, Topic
from grid.kube.resources import NODES
from grid.models import Session
from grid.observability.telemetry import REGISTRY
from grid.runtime import Runtime
from tests.conftest import People
from tests.shell.live import Browser, Clock, changed, connected, connection, cookie_of
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/live/infrastructure/"
OPERATOR = Viewer(id=1, username="olga", role=Role.OPERATOR)
ROUND = 10


def impatient(page: LivePage[Any, Any] = INFRASTRUCTURE, **options: Any) -> Any:
    consumer: Any = LiveConsumer.as_asgi(page=page, **options)
    return CookieMiddleware(URLRouter([path(f"live/{page.name}/", consumer)]))


async def test_full_state_comes_before_changes(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    for name in ("a", "b", "c"):
        cluster.put(NODES, builders.node(name))
    fill(runtime, cluster)
    async with connected(PATH, people.operator) as socket:
        first = await socket.message()
        assert {("nodes", "innerMorph"), ("pools", "innerMorph"), ("activity", "innerMorph")} <= set(changed(first))
        cluster.put(NODES, builders.node("b", ready=False))
        fill(runtime, cluster)
        assert set(changed(await socket.message())) == {("pool-default", "outerMorph"), ("node-b", "outerMorph")}
        assert await socket.is_silent()


async def test_event_to_screen_is_measured_per_browser(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    def measured() -> tuple[float, float]:
        name, labels = "compute_grid_event_to_screen_seconds", {"page": "infrastructure"}
        count, total = (REGISTRY.get_sample_value(f"{name}_{part}", labels) or 0.0 for part in ("count", "sum"))
        return count, total

    before, began = measured(), time.monotonic()
    async with connected(PATH, people.operator) as first, connected(PATH, people.operator) as other:
        for socket in (first, other):
            await socket.message()
        assert measured() == before, "a first picture is no change"
        cluster.put(NODES, builders.node("b"))
        fill(runtime, cluster)
        for socket in (first, other):
            await socket.message_about("node-b")
        await eventually(lambda: measured()[0] >= before[0] + 2)
    assert 0 < measured()[1] - before[1] < (measured()[0] - before[0]) * (time.monotonic() - began)


async def test_change_is_rendered_once_for_all_viewers(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    cluster.put(NODES, builders.node("a"))
    fill(runtime, cluster)
    async with connected(PATH, people.operator) as first, connected(PATH, people.admin) as other:
        await first.message()
        await other.message()
        assert len(feeds) == 1
        before = rendered.count
        cluster.put(NODES, builders.node("a", labels={"node.kubernetes.io/instance-type": "seen-once"}))
        fill(runtime, cluster)
        assert await first.message() == await other.message()
        assert rendered.count == before + 1
    assert len(feeds) == 0


async def test_unresponsive_cluster_is_shown_with_its_duration(people: People, runtime: Runtime, clock: Clock) -> None:
    async with connected(PATH, people.operator) as socket:
        assert "Live" in await socket.message()
        runtime.pods.mark_failed("Connection refused.")
        clock.seconds += 42
        message = await socket.message()
        assert changed(message) == [("freshness", "outerMorph")]
        assert (
            "The cluster has not answered for 42 s; what you see is from 09:00:00 UTC. Connection refused." in message
        )
        runtime.pods.mark_heard(clock.monotonic())
        assert "Live" in await socket.message()


class BrokenPage(LivePage[str, None]):
    """Fails as long as it is told to."""

    name = "broken"
    is_broken = False

    def view(self, query: QueryDict) -> str:
        return ""

    def allowed(self, runtime: Runtime, viewer: Viewer, view: str) -> bool:
        return True

    async def read(self, runtime: Runtime, viewer: Viewer, view: str) -> None:
        pass

    def topics(self, runtime: Runtime, viewer: Viewer, view: str, facts: None) -> Collection[Topic]:
        return {"nodes"}

    def fragments(self, runtime: Runtime, viewer: Viewer, view: str, facts: None, now: datetime) -> Sequence[Fragment]:
        if self.is_broken:
            raise ZeroDivisionError
        return []


async def test_broken_page_says_so_and_recovers(runtime: Runtime, caplog: pytest.LogCaptureFixture) -> None:
    page = BrokenPage()
    with Feeds(Pace(longest_rest=0.01, freshness=0.01, after_failure=0.02)).joined(page, runtime, OPERATOR, "") as feed:
        await asyncio.wait_for(feed.after(0), 5)
        page.is_broken = True
        runtime.hub.publish("nodes")
        await asyncio.wait_for(feed.after(1), 5)
        await asyncio.sleep(0.1)  # several further looks, and as many times that the freshness alone is told
        assert "could not be updated" in feed.latest.singles["freshness"].context.detail  # type: ignore[attr-defined]
        assert feed.version == 2
        page.is_broken = False
        await asyncio.wait_for(feed.after(2), 5)
        assert feed.latest.singles["freshness"].context.headline == "Live"  # type: ignore[attr-defined]
    assert "ZeroDivisionError" in caplog.text


async def test_ended_session_closes_only_its_own_sockets(people: People, runtime: Runtime) -> None:
    app = impatient(watch=SessionWatch(seconds=0.05))
    ended, kept = [await sync_to_async(cookie_of)(user) for user in (people.operator, people.admin)]
    async with AsyncExitStack() as stack:
        sockets = [
            await stack.enter_async_context(connection(PATH, cookie=cookie, app=app))
            for cookie in (ended, kept, ended, kept)
        ]
        opened = [socket for socket in sockets if socket is not None]
        assert len(opened) == 4
        for socket in opened:
            await socket.message()
        await sync_to_async(Session.objects.filter(pk=stored_key(ended)).delete)()
        assert [await socket.close_code() for socket in opened[::2]] == [LOGGED_OUT, LOGGED_OUT]
        assert all([await socket.is_silent() for socket in opened[1::2]])


async def test_lasting_database_failure_closes_socket_with_single_log_line(
    people: People, runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    async def read(session_keys: Collection[str]) -> Mapping[str, Viewer]:
        raise OperationalError("connection refused")

    minutes = count(step=60)
    watch = SessionWatch(read, seconds=0.01, monotonic=lambda: float(next(minutes)))
    async with connected(PATH, people.operator, app=impatient(watch=watch)) as socket:
        assert await socket.close_code() == INTERNAL_ERROR
    [line] = [record for record in caplog.records if record.name == "dashboard.shell.pages.live"]
    assert "the database does not answer page=infrastructure" in line.getMessage()
    assert line.exc_info is None


async def test_an_open_page_is_no_use_of_a_session(people: People, runtime: Runtime) -> None:
    an_hour_ago = timezone.now() - timedelta(hours=1)
    async with connected(PATH, people.operator, app=impatient(watch=SessionWatch(seconds=0.01))) as socket:
        await socket.message()
        await sync_to_async(Session.objects.update)(seen_at=an_hour_ago)
        assert await socket.is_silent()
    assert await sync_to_async(lambda: Session.objects.get().seen_at)() == an_hour_ago


async def test_losing_the_role_ends_the_connection(people: People, runtime: Runtime) -> None:
    async with connected(PATH, people.operator, app=impatient(watch=SessionWatch(seconds=0.05))) as socket:
        await socket.message()
        await sync_to_async(people.operator.groups.clear)()
        assert "You no longer have access to this page" in await socket.message()
        assert await socket.close_code() == FORBIDDEN


async def test_lost_role_closes_page_that_showed_more(people: People, runtime: Runtime) -> None:
    app = impatient(EXECUTIONS, watch=SessionWatch(seconds=0.05))
    async with connected("/live/executions/", people.operator, app=app) as socket:
        await socket.message()
        await sync_to_async(people.operator.groups.clear)()
        assert await socket.close_code() == OTHER_ROLE
    assert len(feeds) == 0


async def test_anonymous_learns_only_of_the_login(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    cluster.put(NODES, builders.node("secret-node"))
    fill(runtime, cluster)
    for cookie in ("", "nonsense"):
        async with connection(PATH, cookie=cookie) as socket:
            assert socket is not None
            message = await socket.message()
            assert "Log in again" in message
            assert "secret-node" not in message
            assert await socket.close_code() == LOGGED_OUT


@pytest.mark.parametrize(
    "origin", ["", "http://127.0.0.1:8001", "https://127.0.0.1:8000", "http://evil.example", "null"]
)
async def test_a_page_of_another_origin_gets_no_connection(origin: str, people: People, runtime: Runtime) -> None:
    async with connection(PATH, people.operator, origin=origin) as socket:
        assert socket is None


async def test_query_with_thousands_of_fields_is_client_fault(people: People, runtime: Runtime) -> None:
    query = "&".join(f"field{number}=1" for number in range(2000))
    async with connection(f"{PATH}?{query}", people.operator) as socket:
        assert socket is None


async def test_a_hostile_query_is_the_default_view(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    cluster.put(NODES, builders.node("a"))
    fill(runtime, cluster)
    query = "?sort=__class__&page=-1&page=9%0A&state=%3Cscript%3E&pool=" + "p" * 5000
    async with connected(PATH + query, people.operator) as socket:
        assert "No node matches." in await socket.message()
    async with connected(f"{PATH}?sort=--name&page=99999", people.operator) as socket:
        assert "node-a" in await socket.message()


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
