"""What the pages of usage cost with a million intervals of one year, or of DAYS: every statement, and the reading as a whole.

    .venv/bin/python -m benchmarks.usage [INTERVALS [RUNNING [DAYS]]]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names. INTERVALS are of 1,000 users in 200 projects on 20
tiers, of one hour each, so that one in 24 goes over a midnight, and spread evenly over the year; a daily sum of deleted executions for
each user and day; and 2,000 pods that run, or RUNNING. What has ended is added up by the leader's steps. One user has one interval in
BUSY_SHARE. Reported, of ROUNDS: the fastest and the median reading with its adding up, and the median of its slowest statement, in
milliseconds of this thread's computing, which for PostgreSQL is without its server's, and by the clock.
"""

import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from benchmarks.database import in_database
from benchmarks.history import NOW, USERS, executions, people

ROUNDS = 15
BASE = 10_000
BUSY_SHARE = 50  # one in so many intervals is of the busy user


def measure(intervals: int, running: int, days: int) -> None:
    people()
    executions(0, BASE, is_ended=True)
    fill(intervals, running, days)
    add_up()
    report(intervals)


def add_up() -> None:
    """Add up what has ended as the leader does, in its batches."""
    from django.db import connection

    from grid.controller.housekeeping import BATCH
    from grid.usage.dailyusage import add_up_ended

    times = []
    while True:
        began = time.thread_time(), time.perf_counter()
        if not add_up_ended(NOW, BATCH):
            break
        times.append(since(began))
    print(f"{connection.vendor}: added up in {len(times):,} steps of {BATCH}, fastest and median{columns_of(times)}")


def report(intervals: int) -> None:
    from django.db import connection

    from dashboard.usage.usage_records import read_everybody, read_usage
    from dashboard.usage.viewmodels.usage import UsageView, last_months, months_of, tables
    from grid.models import Project, User
    from grid.usage.budgets import keeper as spending

    plain, busy = User.objects.get(username="user-7"), User.objects.get(username="user-0")
    months = last_months(NOW)
    whole_year, this, last = (months[-1].first, months[0].last), (months[0].first, months[0].last), months[1]
    view = UsageView(last)
    projects = list(Project.objects.values_list("pk", flat=True))
    work: dict[str, Callable[[], object]] = {
        "budgets: this month": lambda: spending.spent(projects, NOW - timedelta(seconds=1)),
        "home: this month": lambda: read_usage(*this, NOW, plain.pk),
        "own: twelve months": lambda: months_of(read_usage(*whole_year, NOW, plain.pk), NOW),
        "own, a busy user": lambda: months_of(read_usage(*whole_year, NOW, busy.pk), NOW),
        "everybody: a month": lambda: tables(read_everybody(last.first, last.last, NOW)[0], view, is_everybody=True),
    }
    print(f"{connection.vendor}: {intervals:,} intervals; fastest and median of {ROUNDS}, ms: computed, by the clock")
    for name, call in work.items():
        times, statements = timed(call)
        slowest = max(statements.values(), key=lambda taken: statistics.median(wall for _, wall in taken))
        print(f"{name:24}{columns_of(times)}   slowest statement{columns_of(slowest)}")
        for sql, taken in statements.items() if "-v" in sys.argv else ():
            print(f"    {columns_of(taken)} {sql[:900]}")


def columns_of(times: list[tuple[float, float]]) -> str:
    both = (column for column in zip(*times, strict=True))
    return "".join(f"{min(column):9.1f}{statistics.median(column):9.1f}" for column in both)


def fill(intervals: int, running: int, days: int) -> None:
    """Write BASE intervals of the last days and repeat them each so many days earlier, within the database."""
    from django.db import connection

    from grid.models import DailyUsage, MonthlyUsage, UsageInterval, User

    users = list(User.objects.order_by("pk").values_list("pk", flat=True))
    copies = intervals // BASE
    period = timedelta(days=days) / copies

    def row(number: int, **fields: Any) -> UsageInterval:
        owner = 0 if number % BUSY_SHARE == 0 else number % USERS
        began = (NOW - timedelta(hours=1) - period * number / BASE).replace(microsecond=0)
        columns = {"ended_at": began + timedelta(hours=1), "seconds": 3600} | fields
        return UsageInterval(
            execution_id=f"e{number % BASE:09}", pod_uid=f"u{number}{len(fields)}", pod_name="p", node_name="n", owner_id=users[owner],
            project_id=f"p{owner % 200}", tier_id=f"t{number % 20}", node_pool="default", millicores=1000, mebibytes=1024,
            gpus=number % 2, price_per_hour="0.5", began_at=began, **columns,
        )  # fmt: skip

    UsageInterval.objects.bulk_create([row(number) for number in range(BASE)], batch_size=1000)
    is_postgresql, table = connection.vendor == "postgresql", UsageInterval._meta.db_table
    seconds = round(period.total_seconds())
    earlier = "{0} - n.i * interval '%d seconds'" if is_postgresql else "datetime({0}, '-' || (n.i * %d) || ' seconds')"
    columns = [str(field.column) for field in UsageInterval._meta.concrete_fields if field.name != "id"]
    values = dict.fromkeys(("began_at", "ended_at"), earlier % seconds) | {"pod_uid": "{0} || 'x' || n.i"}
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {copies - 1:d}) "
            f"INSERT INTO {table} ({', '.join(columns)}) "
            f"SELECT {', '.join(values.get(column, '{0}').format(f'row.{column}') for column in columns)} "
            f"FROM n CROSS JOIN (SELECT * FROM {table}) AS row"
        )
    open_ones = [row(number, ended_at=None, seconds=None) for number in range(running)]
    UsageInterval.objects.bulk_create(open_ones, batch_size=1000)
    dates = [(NOW - timedelta(days=number)).date() for number in range(days)]
    models: list[tuple[Any, Counter[date]]] = [
        (DailyUsage, Counter(dates)),
        (MonthlyUsage, Counter(day.replace(day=1) for day in dates)),
    ]
    for model, counts in models:
        for day, count in counts.items():
            model.objects.bulk_create(
                model(
                    day=day, owner_id=user, project_id="p0", tier_id="t0", node_pool="default", price_per_hour="0.5",
                    pod_seconds=3600 * count, millicore_seconds=3_600_000 * count,
                )
                for user in users
            )  # fmt: skip
    if is_postgresql:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def timed(call: Callable[[], object]) -> tuple[list[tuple[float, float]], dict[str, list[tuple[float, float]]]]:
    """Return the milliseconds, computed and by the clock, of each call, and of each of its statements until its first row."""
    from django.db import connection

    times, statements = list[tuple[float, float]](), dict[str, list[tuple[float, float]]]()

    def watch(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        began = time.thread_time(), time.perf_counter()
        try:
            return execute(sql, *rest)
        finally:
            statements.setdefault(sql, []).append(since(began))

    with connection.execute_wrapper(watch):
        for _ in range(ROUNDS):
            began = time.thread_time(), time.perf_counter()
            call()
            times.append(since(began))
    return times, statements


def since(began: tuple[float, float]) -> tuple[float, float]:
    return (time.thread_time() - began[0]) * 1000, (time.perf_counter() - began[1]) * 1000


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument != "-v"]
    in_database(lambda: measure(*numbers, *(1_000_000, 2_000, 365)[len(numbers) :]))
