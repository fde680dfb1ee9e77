"""Queries that the database answers only when a test lets it."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection
from psycopg import AsyncConnection

_LOCK = 4711  # an advisory lock of PostgreSQL's


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
