"""Queries that the database answers only when a test lets it."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from asgiref.sync import sync_to_async
from django.db import connection

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
        is_server = connection.vendor == "postgresql"
        if is_server:
            await sync_to_async(self._say)(f"SELECT pg_advisory_lock({_LOCK})")
        try:
            yield
        finally:
            self._may_end.set()
            if is_server:
                await sync_to_async(self._say)(f"SELECT pg_advisory_unlock({_LOCK})")

    @staticmethod
    def _say(sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)
