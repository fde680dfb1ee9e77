"""While one person's query takes its time, everybody else gets pages, and sessions and grants are checked."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings

from dashboard.executions.history import HistoryPage, ended_page
from dashboard.executions.views import executions
from dashboard.shell.access import Viewer
from dashboard.shell.pages.session_watch import SessionWatch
from grid.asgi import application
from grid.database import threads as database
from grid.models import User
from grid.proxy_asgi import StoredGrants
from grid.runtime import Runtime
from tests.conftest import People
from tests.shell.live import connected, cookie_of
from tests.support.slowquery import SlowQuery

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def threads() -> AsyncIterator[None]:
    database.open_threads()
    yield
    await database.close_threads()


async def status(path: str, user: User) -> int:
    cookie = await sync_to_async(cookie_of)(user)
    address, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": address,
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1:8000"), (b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode())],
        "client": ("127.0.0.1", 1),
    }
    untyped: Any = ApplicationCommunicator
    browser = untyped(application, scope)
    await browser.send_input({"type": "http.request", "body": b""})
    answer = await browser.receive_output(timeout=30)
    while (await browser.receive_output(timeout=30)).get("more_body"):
        pass
    await browser.wait(timeout=30)
    code: int = answer["status"]
    return code


async def test_a_slow_page_of_one_person_delays_nobody_else(
    people: People, runtime: Runtime, threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowQuery()

    def slow_for_one(viewer: Viewer, *args: Any) -> HistoryPage:
        if viewer.username == people.owner.username:
            slow.run()
        return ended_page(viewer, *args)

    monkeypatch.setattr(executions, "ended_page", slow_for_one)
    cookie = await sync_to_async(cookie_of)(people.stranger)
    async with slow.unanswered():
        waiting = asyncio.create_task(status("/executions/?show=ended", people.owner))
        await slow.is_running()
        await everything_else(people, cookie)
        assert not waiting.done()
    assert await waiting == 200


@pytest.mark.parametrize("name", ["pages", "background"])
async def test_slow_queries_delay_no_others(people: People, runtime: Runtime, threads: None, name: str) -> None:
    cookie = await sync_to_async(cookie_of)(people.stranger)
    slow, its_threads = SlowQuery(), getattr(database, name)
    async with slow.unanswered():
        waiting = [asyncio.create_task(its_threads.run(slow.run)) for _ in range(3)]
        for _ in waiting:
            await slow.is_running()
        await everything_else(people, cookie)
        assert not any(query.done() for query in waiting)
    await asyncio.gather(*waiting)


async def everything_else(people: People, cookie: str) -> None:
    async with asyncio.timeout(20):
        assert await status("/executions/?show=ended", people.stranger) == 200
        async with connected("/live/infrastructure/", people.operator) as socket:
            await socket.message()
        viewer = await SessionWatch(seconds=0.001).viewer(cookie)
        assert viewer is not None
        assert await StoredGrants().exchange("none", "none", "none", now=datetime.now(UTC)) is None
        assert await StoredGrants().passages([("none", "none")]) == {}
