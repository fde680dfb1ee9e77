"""What it costs to check the sessions of many open pages, and how long a check takes beside a slow query.

    .venv/bin/python -m benchmarks.sessions [SOCKETS] [SECONDS]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names, with as many sessions as sockets. First
SOCKETS tasks ask for their session as open pages do, for SECONDS. Then sessions are checked while a live page waits for a query of
one second: in the threads of `grid.database.threads`, and, as the baseline, in Django's one thread for what is no request.
"""

import asyncio
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.database import in_database
from benchmarks.stage import log_in

if TYPE_CHECKING:
    from grid.models import User

CHECKS = 10


def main(sockets: int, seconds: int) -> None:
    from django.db import connection

    keys = log_in(users(sockets))
    print(f"{connection.vendor}: {sockets:,} sockets, each with a session of its own")
    asyncio.run(measured(keys, seconds))


def users(number: int) -> Sequence["User"]:
    from grid.models import User

    return User.objects.bulk_create(User(username=f"person-{n}", password=f"hash-{n}") for n in range(number))


async def measured(keys: list[str], seconds: int) -> None:
    from grid.database import threads as database

    database.open_threads()
    queries, cpu = await watched(keys, seconds)
    print(f"queries a second {queries / seconds:.1f}, CPU {cpu / seconds * 1000:.0f} ms a second")
    print(f"in threads of its own: {await beside_a_slow_query(keys)}")
    await database.close_threads()
    print(f"in Django's one thread: {await beside_a_slow_query(keys)}")


async def watched(keys: list[str], seconds: int) -> tuple[int, float]:
    """Queries and CPU seconds of the watch."""
    from django.db.backends.signals import connection_created

    from dashboard.shell.pages.session_watch import SessionWatch

    counted: Counter[str] = Counter()

    def counting(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("SELECT") and "grid_" in sql:
            counted["queries"] += 1
        return execute(sql, *rest)

    def connected(connection: Any, **kwargs: Any) -> None:
        if counting not in connection.execute_wrappers:
            connection.execute_wrappers.append(counting)

    connection_created.connect(connected)
    watch = SessionWatch()

    async def socket(key: str) -> None:
        while True:
            assert await watch.viewer(key) is not None

    tasks = [asyncio.create_task(socket(key)) for key in keys]
    await asyncio.sleep(2)
    counted.clear()
    cpu = time.process_time()
    await asyncio.sleep(seconds)
    cost = counted["queries"], time.process_time() - cpu
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return cost


async def beside_a_slow_query(keys: list[str]) -> str:
    from dashboard.shell.pages.session_watch import read_viewers
    from grid.database import threads as database

    times = []
    for _ in range(CHECKS):
        slow = asyncio.create_task(database.pages.run(one_second))
        await asyncio.sleep(0.05)
        began = time.perf_counter()
        assert len(await database.background.run(read_viewers, keys)) == len(keys)
        times.append((time.perf_counter() - began) * 1000)
        await slow
    return f"a check takes {statistics.median(times):.0f} ms (median of {CHECKS}), {max(times):.0f} ms at most"


def one_second() -> None:
    from django.db import connection

    connection.ensure_connection()
    if connection.vendor == "sqlite":
        connection.connection.create_function("pg_sleep", 1, time.sleep)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(1)")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    in_database(lambda: main(*numbers, *(1_000, 10)[len(numbers) :]))
