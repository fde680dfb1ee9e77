"""Database work in threads: over which connections, and that none waits for another's query; and lookups of impossible numbers."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from datetime import UTC
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings as django_settings
from django.contrib.auth.decorators import login_not_required
from django.core.asgi import get_asgi_application
from django.db import DataError, OperationalError, connection
from django.db.backends.postgresql.base import TIMESTAMPTZ_OID
from django.db.backends.postgresql.psycopg_any import register_tzloader
from django.forms import ModelMultipleChoiceField, ValidationError
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient
from django.urls import path
from django.utils.module_loading import import_string
from psycopg.pq import Format
from pytest_django import Settings

from grid.asgi import django_threads as dashboard
from grid.database import threads as database
from grid.database.threads import DatabaseThreads, RequestThreads, _Executor
from grid.database.timestamps import TimestampLoader
from grid.database.trouble import DatabaseTrouble, trouble_of
from grid.models import User
from tests.support.database import ON_POSTGRESQL, SlowQuery
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def two() -> AsyncIterator[DatabaseThreads]:
    threads = DatabaseThreads(2, "of a test")
    threads.open()
    yield threads
    await threads.close()


async def test_a_query_waits_for_no_other(two: DatabaseThreads) -> None:
    slow = SlowQuery()
    async with slow.unanswered():
        waiting = asyncio.create_task(two.run(slow.run))
        await slow.is_running()
        assert await two.run(User.objects.count) == 0
        assert not waiting.done()
    await waiting


async def test_thread_keeps_its_connection_and_closes_it_at_end() -> None:
    threads = DatabaseThreads(1, "of a test")
    threads.open()

    def used() -> tuple[Any, object]:
        User.objects.count()
        return connection._connections[connection._alias], connection.connection  # type: ignore[attr-defined]

    wrapper, first = await threads.run(used)
    assert (await threads.run(used))[1] is first
    await threads.close()
    assert wrapper.connection is None or wrapper.is_in_memory_db()  # which lives as long as somebody is connected


def endless(begun: threading.Event) -> None:
    """Ask for what no database ever has."""
    numbers = "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) SELECT max(n) FROM number"
    with connection.cursor() as cursor:
        begun.set()
        cursor.execute(numbers if connection.vendor == "sqlite" else "SELECT pg_sleep(3600)")


async def test_threads_that_are_closed_wait_for_no_endless_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "CLOSING_SECONDS", 0.1)
    threads, begun = DatabaseThreads(1, "of a test"), threading.Event()
    threads.open()
    asking = asyncio.create_task(threads.run(endless, begun))
    await asyncio.to_thread(begun.wait, 30)
    async with asyncio.timeout(30):
        await threads.close()
        with pytest.raises(OperationalError):
            await asking


@ON_POSTGRESQL
async def test_postgresql_cancels_slow_statement_and_thread_continues(settings: Settings) -> None:
    settings.STATEMENT_SECONDS = 0.2
    threads = DatabaseThreads(1, "of a test")
    threads.open()
    try:
        with pytest.raises(OperationalError) as raised:
            await threads.run(endless, threading.Event())
        assert trouble_of(raised.value) is DatabaseTrouble.BUSY
        assert await threads.run(User.objects.count) == 0
    finally:
        await threads.close()


@ON_POSTGRESQL
def test_timestamps_of_postgresql_are_read_by_our_loader_as_by_djangos() -> None:
    texts = [
        "2026-12-01 09:12:14.123456+00",
        "2026-12-01 09:12:14.1+00",
        "0001-01-01 00:00:00+00",
        "9999-12-31 23:59:59+02:30",
    ]
    with connection.cursor() as cursor:
        assert cursor.adapters.get_loader(TIMESTAMPTZ_OID, Format.TEXT) is TimestampLoader
        cursor.execute("SELECT " + ", ".join(["%s::timestamptz"] * len(texts)), texts)
        ours = cursor.fetchone()
        register_tzloader(UTC, cursor)
        cursor.execute("SELECT " + ", ".join(["%s::timestamptz"] * len(texts)), texts)
        assert ours == cursor.fetchone()
        assert {moment.tzinfo for moment in ours} == {UTC}
        with pytest.raises(DataError):
            cursor.execute("SELECT 'infinity'::timestamptz")
            cursor.fetchone()


@ON_POSTGRESQL
async def test_a_connection_that_the_server_has_closed_is_replaced() -> None:
    threads = DatabaseThreads(1, "of a test")
    threads.open()

    def backend() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            count: int = cursor.fetchone()[0]
            return count

    def end(pid: int) -> None:
        with connection.cursor() as cursor:
            # The milliseconds to wait: without them the server answers before it has closed anything.
            cursor.execute("SELECT pg_terminate_backend(%s, 20000)", [pid])
            assert cursor.fetchone() == (True,)

    before = await threads.run(backend)
    await sync_to_async(end)(before)
    assert await threads.run(backend) != before
    await threads.close()


@ON_POSTGRESQL
async def test_a_kept_connection_is_not_tried_before_each_use() -> None:
    threads = DatabaseThreads(1, "of a test")
    threads.open()

    def transactions() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")
            cursor.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
            count: int = cursor.fetchone()[0]
            return count

    before = await threads.run(transactions)
    for _ in range(20):
        await threads.run(User.objects.count)
    assert await threads.run(transactions) - before < 30
    await threads.close()


def test_server_that_closes_a_connection_is_not_silent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        driver = SimpleNamespace(closed=False, fileno=ours.fileno)
        assert database._is_silent(driver)
        theirs.close()
        assert not database._is_silent(driver)
        driver.closed = True
        assert not database._is_silent(driver)


async def answer(scope: Any, receive: Any, send: Any) -> None:
    send(await sync_to_async(threading.current_thread)())


async def ask(path: str) -> threading.Thread:
    threads: list[threading.Thread] = []
    application: Any = RequestThreads(answer, apart=("/healthz",))
    await application({"type": "http", "path": path}, None, threads.append)
    return threads[0]


async def test_requests_share_the_threads_for_requests(two: DatabaseThreads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "requests", two)
    asked = [await ask("/") for _ in range(5)]
    assert len(set(asked)) <= 2
    assert all("of a test" in thread.name for thread in asked)


async def test_a_probe_waits_for_no_request(two: DatabaseThreads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "requests", two)
    slow = SlowQuery()
    async with slow.unanswered():
        waiting = [asyncio.create_task(two.run(slow.run)) for _ in range(2)]
        for _ in waiting:
            await slow.is_running()
        assert "of a test" not in (await ask("/healthz")).name
    await asyncio.gather(*waiting)


class SlowViews:
    """How many wait for an answer, and what lets them go."""

    waiting = 0
    may_answer: asyncio.Event


@login_not_required
async def slow_view(request: HttpRequest) -> HttpResponse:
    SlowViews.waiting += 1
    await SlowViews.may_answer.wait()
    return HttpResponse("slow")


@login_not_required
def quick_view(request: HttpRequest) -> HttpResponse:
    return HttpResponse("quick")


urlpatterns = [path("slow/", slow_view), path("quick/", quick_view)]


async def status_of(application: Any, address: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> int:
    scope = {
        "type": "http",
        "method": "GET",
        "path": address,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000"), *headers],
        "client": ("127.0.0.1", 1),
    }
    untyped: Any = ApplicationCommunicator
    browser = untyped(application, scope)
    await browser.send_input({"type": "http.request", "body": b""})
    code: int = (await browser.receive_output(timeout=30))["status"]
    await browser.wait(timeout=30)
    return code


async def test_views_waiting_outside_the_database_hold_no_thread(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    SlowViews.waiting, SlowViews.may_answer = 0, asyncio.Event()
    database.open_threads()
    try:
        application = RequestThreads(get_asgi_application())
        waiting = [asyncio.create_task(status_of(application, "/slow/")) for _ in range(2 * database.requests.number)]
        await eventually(lambda: SlowViews.waiting == len(waiting))
        assert await status_of(application, "/quick/") == 200
        SlowViews.may_answer.set()
        assert set(await asyncio.gather(*waiting)) == {200}
    finally:
        await database.close_threads()


class Turns:
    """Counts the pieces of work that a request has done in threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        submit = _Executor.submit

        def counted(executor: _Executor, *args: Any, **kwargs: Any) -> Any:
            self.taken += executor is database.requests.executor
            return submit(executor, *args, **kwargs)

        monkeypatch.setattr(_Executor, "submit", counted)

    async def of(self, user: User, path: str) -> int:
        self.taken = 0
        client = AsyncClient()
        await client.aforce_login(user)
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
        assert await status_of(dashboard, path, [(b"cookie", cookies.encode())]) == 200
        return self.taken


async def test_page_takes_few_turns_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a place in a line behind all other requests. Django's own middleware would take some fifteen more."""
    user = await User.objects.acreate_user("alice")
    database.open_threads()
    try:
        # Who asks; the page; its compression; its end. And a beginning, once Django's test client has been used: it connects the
        # receivers of `request_started` again.
        assert await Turns(monkeypatch).of(user, "/account/") <= 5
    finally:
        await database.close_threads()


def test_every_middleware_is_asynchronous() -> None:
    assert all(import_string(name).async_capable for name in django_settings.MIDDLEWARE)


@pytest.mark.parametrize("number", [10**19, -(10**19), int("9" * 400)])
def test_impossible_number_is_in_no_row(number: int) -> None:
    user = User.objects.create_user("alice")
    assert list(User.objects.filter(pk__in=[number, user.pk])) == [user]
    assert not User.objects.filter(pk__in=[number]).exists()
    assert list(User.objects.exclude(pk__in=[number])) == [user]


def test_form_refuses_an_impossible_number_as_a_choice() -> None:
    with pytest.raises(ValidationError, match="not one of the available choices"):
        ModelMultipleChoiceField(User.objects.all()).clean(["9" * 30])
