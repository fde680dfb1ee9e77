"""A database that is full, busy, slow or away: one page with status 503, nothing half-written, and everybody else gets pages."""

import asyncio
import logging
import sqlite3
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.core.handlers.exception import response_for_exception
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, ProgrammingError, connection, connections
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from dashboard.executions.history import HistoryPage, ended_page
from dashboard.executions.views import executions
from dashboard.shell.access import Viewer
from dashboard.shell.pages.session_watch import SessionWatch
from grid.accounts.sessions import SEEN_PRECISION
from grid.asgi import application
from grid.database import threads as database
from grid.database.trouble import DatabaseTrouble, trouble_of
from grid.edge.logs import DatabaseTroubles
from grid.models import Execution, LifecycleEntry, Project, Session, User
from grid.proxy_asgi import StoredGrants
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_environment, make_project, make_tier
from tests.shell.live import connected, cookie_of
from tests.support.database import SlowQuery, full_database


@pytest.fixture
def offered(people: People) -> Project:
    make_environment()
    make_tier("small", is_default=True)
    return make_project(people.owner)


@pytest.fixture
def browser(people: People) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(people.owner)
    return client


def form(number: int, title: str) -> dict[str, str]:
    return {
        "kind": "workspace",
        "project": "churn",
        "environment": "jupyterlab",
        "tier": "small",
        "token": f"t{number}",
        "title": title,
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
def test_launch_on_full_disk_is_refused(browser: Client, offered: Project, caplog: pytest.LogCaptureFixture) -> None:
    with full_database():
        launched = 0
        while (answer := browser.post("/launch/", form(launched, "x" * 80))).status_code == 302:
            launched += 1
        assert answer.status_code == 503
        assert answer["Retry-After"] == "30"
        page = answer.content.decode()
        assert "The disk of the database is full: nothing was saved. An operator has to make room." in page
        assert Execution.objects.count() == LifecycleEntry.objects.values("execution").distinct().count() == launched
        assert browser.get("/launch/").status_code == 200, "reading goes on"
    assert browser.post("/launch/", form(launched, "x" * 80)).status_code == 302
    assert Execution.objects.count() == launched + 1
    lines = [record for record in caplog.records if record.name == "django.request" and record.levelno >= logging.ERROR]
    assert len(lines) == 1
    assert DatabaseTroubles().filter(lines[0])
    assert lines[0].getMessage() == "Service Unavailable: /launch/ reason=database or disk is full"
    assert lines[0].exc_info is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
def test_page_is_read_although_use_cannot_be_recorded(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    Session.objects.update(seen_at=timezone.now() - 2 * SEEN_PRECISION)
    setting = "PRAGMA query_only" if connection.vendor == "sqlite" else "SET default_transaction_read_only"
    with connection.cursor() as cursor:
        # Or it may be closed for its age, and the next one may write. The proxy `connection` would lose what it had before.
        monkeypatch.setattr(connections[DEFAULT_DB_ALIAS], "close_at", None)
        cursor.execute(f"{setting} = on")
        try:
            with pytest.raises(DatabaseError, match=r"read-?only"):
                Session.objects.update(agent="written")
            assert browser.get("/").status_code == 200
        finally:
            cursor.execute(f"{setting} = off")
    assert browser.get("/").status_code == 200
    assert Session.objects.get().seen_at > timezone.now() - SEEN_PRECISION


def sqlite(name: str) -> OperationalError:
    cause = sqlite3.OperationalError("said by SQLite")
    cause.sqlite_errorname = name
    return _caused(OperationalError("said by SQLite"), cause)


def postgresql(cause: psycopg.Error) -> OperationalError:
    return _caused(OperationalError(*cause.args), cause)


def _caused(error: OperationalError, cause: Exception) -> OperationalError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (sqlite("SQLITE_FULL"), DatabaseTrouble.FULL),
        (sqlite("SQLITE_BUSY_SNAPSHOT"), DatabaseTrouble.BUSY),
        (sqlite("SQLITE_READONLY_DBMOVED"), DatabaseTrouble.READ_ONLY),
        (sqlite("SQLITE_CORRUPT"), DatabaseTrouble.AWAY),
        (sqlite("SQLITE_ERROR"), None),
        (postgresql(psycopg.errors.DiskFull("no space left")), DatabaseTrouble.FULL),
        (postgresql(psycopg.errors.LockNotAvailable("lock timeout")), DatabaseTrouble.BUSY),
        (postgresql(psycopg.OperationalError("connection refused")), DatabaseTrouble.AWAY),
        (postgresql(psycopg.errors.UndefinedColumn("no such column")), None),
        (ProgrammingError("ours"), None),
    ],
    ids=str,
)
def test_database_trouble_is_told_from_own_faults(error: Exception, trouble: DatabaseTrouble | None) -> None:
    assert trouble_of(error) is trouble
    assert _answer(error).status_code == (500 if trouble is None else 503)


@pytest.mark.parametrize(("target", "swap"), [("tbody#samples-rows", "none"), ("main#main", None)])
def test_a_part_of_a_page_stays_as_it_was(target: str, swap: str | None) -> None:
    answer = _answer(sqlite("SQLITE_BUSY"), {"HX-Request": "true", "HX-Target": target})
    assert answer.get("HX-Reswap") == swap


def _answer(error: Exception, headers: dict[str, str] | None = None) -> HttpResponse:
    try:
        raise error
    except Exception:
        assert sys.exc_info()[1] is error
        return response_for_exception(RequestFactory().get("/launch/", headers=headers), error)


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


@pytest.mark.django_db(transaction=True)
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


@pytest.mark.django_db(transaction=True)
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
