"""The tests' database in a file, as in production: in memory, a writer does not wait for another but is refused."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from psycopg import AsyncConnection

from tests.support.shop import Shop

ON_SQLITE = pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite's file")
ON_POSTGRESQL = pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's server")
_LOCK = 4711  # an advisory lock of PostgreSQL's


@contextmanager
def database_on_file(path: Path) -> Iterator[None]:
    """With all that is in memory now. A server's database is shared by several writers as it is."""
    if connections["default"].vendor != "sqlite":
        yield
        return
    in_memory, settings = connections["default"], connections.settings["default"]
    in_memory.ensure_connection()
    copy = sqlite3.connect(path)
    in_memory.connection.backup(copy)
    # As each connection asks; of several that are the first to ask, SQLite tells all but one at once that the database is locked.
    copy.execute("PRAGMA journal_mode=WAL")
    copy.close()
    name, settings["NAME"] = settings["NAME"], str(path)
    connections["default"] = connections.create_connection("default")
    try:
        yield
    finally:
        connections["default"].close()
        settings["NAME"], connections["default"] = name, in_memory


@pytest.fixture
def on_file(transactional_db: None, shop: Shop, tmp_path: Path) -> Iterator[Shop]:
    with database_on_file(tmp_path / "grid.sqlite3"):
        yield shop


@contextmanager
def full_database() -> Iterator[None]:
    """SQLite may take no further page, and says what it says on a full disk."""
    if connection.vendor != "sqlite":
        pytest.skip("a server's disk is not ours to fill")
    with connection.cursor() as cursor:
        # What other tests have deleted leaves pages that would be used first.
        cursor.execute("CREATE TABLE filler (bytes BLOB)")
        while cursor.execute("PRAGMA freelist_count").fetchone()[0]:
            cursor.execute("INSERT INTO filler VALUES (zeroblob(3000))")
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA max_page_count = 1073741823")
            cursor.execute("DROP TABLE filler")


class SlowQuery:
    """`run` it in as many threads as wanted: each waits in a query until `answered` ends."""

    def __init__(self) -> None:
        self._running = threading.Semaphore(0)
        self._may_end = threading.Event()

    def run(self) -> None:
        connection.ensure_connection()
        if connection.vendor == "sqlite":
            connection.connection.create_function("wait", 0, self._wait)
            sql = "SELECT wait()"
        else:
            self._running.release()
            sql = f"SELECT pg_advisory_lock_shared({_LOCK}), pg_advisory_unlock_shared({_LOCK})"
        with connection.cursor() as cursor:
            cursor.execute(sql)

    async def is_running(self) -> None:
        """Return when one more query is under way."""
        assert await asyncio.to_thread(self._running.acquire, timeout=30)

    def _wait(self) -> int:
        self._running.release()
        self._may_end.wait(30)
        return 1

    @asynccontextmanager
    async def unanswered(self) -> AsyncIterator[None]:
        """No such query is answered within this."""
        async with AsyncExitStack() as stack:
            if connection.vendor == "postgresql":
                # Over a connection of its own: Django closes its own, and the lock is gone, as soon as one is old.
                parameters = await sync_to_async(connection.get_connection_params)()
                lock = await stack.enter_async_context(await AsyncConnection.connect(**_plain(parameters)))
                await lock.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
            try:
                yield
            finally:
                self._may_end.set()


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Without what is for connections of Django's own kind."""
    return {name: value for name, value in parameters.items() if name not in ("context", "cursor_factory")}
