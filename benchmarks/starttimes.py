"""What the page of start-up times costs with a million starts: every statement, the reading as a whole, and the writing of one start.

    .venv/bin/python -m benchmarks.starttimes [STARTS [IMAGES]]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names. STARTS are of 20 tiers, one environment, three
pools and IMAGES images (50), spread evenly over 60 days. The sums of days are made of the sums of BASE starts, at the day on which these
were repeated. Reported, of ROUNDS: the fastest and the median reading of 30 days with its adding up, and the median of its slowest
statement, in milliseconds of this thread's computing, which for PostgreSQL is without its server's, and by the clock. Aim for a
statement: 20 ms.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, date, timedelta
from itertools import count as counting
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.database import in_database
from benchmarks.history import NOW, people
from benchmarks.usage import ROUNDS, columns_of, since, timed

if TYPE_CHECKING:
    from grid.models import StartUp

BASE, DAYS = 10_000, 60
IMAGE = "registry.example/images/lab-{}:1"


def measure(starts: int, images: int) -> None:
    from django.db import connection, transaction

    from dashboard.starts.startup_records import read_shown, read_slowest, read_start_times
    from dashboard.starts.viewmodels.start_times import (
        GROUPINGS,
        StartTimesView,
        phase_times,
        start_charts,
        start_day_lines,
        start_lines,
    )
    from grid.starts import startups

    people()
    rows = [start_up(number, timedelta(days=DAYS) / (starts // BASE), images) for number in range(BASE)]
    fill(rows, starts // BASE)
    fill_days(rows, starts // BASE)

    def page(by: str, of: str = "") -> Callable[[], object]:
        view = StartTimesView(by, "30", of)

        def work() -> None:
            read = read_start_times(view, NOW)
            start_lines(read.groups, view), phase_times(read.shown.whole), read_slowest(read, by)
            start_day_lines(view.days(NOW), read.shown.days)

        return work

    def charts() -> None:
        view = StartTimesView("tier", "30", "t1")
        start_charts(view.days(NOW), read_shown(view, NOW).days)

    new = counting(starts * 10)

    def write() -> None:
        with transaction.atomic():
            startups.count_start(start_up(next(new), timedelta(), images))

    print(f"{connection.vendor}: {starts:,} starts, {images} images; fastest and median, ms: computed, by the clock")
    work = {f"page by {by}": page(by) for by in GROUPINGS} | {"charts of a tier": charts, "one start written": write}
    for name, call in work.items():
        times, _ = timed(call)
        statements = whole_statements(call)
        slowest = max(statements.values(), key=lambda taken: median(wall for _, wall in taken))
        print(f"{name:22}{columns_of(times)}   slowest statement{columns_of(slowest)}", flush=True)
        for sql, taken in statements.items() if "-v" in sys.argv else ():
            print(f"    {columns_of(taken)} {sql[:300]}")


def whole_statements(call: Callable[[], object]) -> dict[str, list[tuple[float, float]]]:
    """Return the milliseconds, computed and by the clock, of each statement that reads, until its last row was fetched."""
    from django.db import connection, transaction

    asked = dict[str, Any]()

    def watch(execute: Callable[..., Any], sql: str, params: Any, *rest: Any) -> Any:
        if sql.startswith("SELECT"):
            asked[sql] = params
        return execute(sql, params, *rest)

    with connection.execute_wrapper(watch):
        call()
    times = dict[str, list[tuple[float, float]]]()
    # In a transaction, because some lock what they read.
    with transaction.atomic(), connection.cursor() as cursor:
        for sql, params in asked.items():
            for _ in range(ROUNDS):
                began = time.thread_time(), time.perf_counter()
                cursor.execute(sql, params)
                cursor.fetchall()
                times.setdefault(sql, []).append(since(began))
    return times


def start_up(number: int, period: timedelta, images: int) -> "StartUp":
    from grid.models import StartUp

    # Times vary as they do: most are short, few are very long.
    pulling = 0.0 if number % 5 else 20 + number % 97 * 1.3 + number % 11
    phases = {"queued": 1 + number % 13 * 0.7, "volumes": 1 + number % 31 / 10, "pulling": pulling}
    phases |= {"starting": 0.5 + number % 17 / 10, "answering": 4 + number % 89 / 7, "creating": 0.5, "scheduling": 0.1}
    return StartUp(
        execution_id=f"e{number:09}", at=NOW - period * number / BASE, ran=number % 20 != 0, kind="job", tier_id=f"t{number % 20}",
        environment_id="lab", node_pool=f"pool-{number % 3}", image=IMAGE.format(number % images), total=sum(phases.values()),
        node_wait=0.0, setup=0.0, node_started=False, image_cached=number % 5 != 0, image_bytes=0, **phases,
    )  # fmt: skip


def fill_days(rows: Sequence["StartUp"], copies: int) -> None:
    """Write the sums of all days."""
    from grid.diagnosis.startup import Phase
    from grid.models import StartDay
    from grid.starts.startdays import MERGED, WHOLE, StartSums, count, sums_text, together

    base: defaultdict[tuple[str, str], StartSums] = defaultdict(StartSums)
    for row in rows:
        seconds = {name: value for name in (WHOLE, *Phase, MERGED) if (value := getattr(row, name)) is not None}
        keys = (
            ("all", ""),
            ("tier", row.tier_id),
            ("environment", "lab"),
            ("pool", row.node_pool),
            ("image", row.image),
        )
        for key in keys if row.ran else ():
            count(base[key], row.pk, seconds, image_cached=row.image_cached, node_started=row.node_started)
    starts: defaultdict[date, int] = defaultdict(int)
    for copy in range(copies):
        starts[(NOW - timedelta(days=DAYS) / copies * copy).astimezone(UTC).date()] += 1
    made = []
    for (grouping, group), sums in base.items():
        several = {number: together([sums] * number) for number in set(starts.values())}
        for day, number in starts.items():
            total = several[number]
            made.append(StartDay(day=day, grouping=grouping, group=group, starts=total.starts, sums=sums_text(total)))
    StartDay.objects.bulk_create(made, batch_size=200)


def fill(rows: Sequence["StartUp"], copies: int) -> None:
    """Write the starts and repeat them each so much earlier, within the database."""
    from django.db import connection

    from grid.models import StartUp

    period = timedelta(days=DAYS) / copies
    StartUp.objects.bulk_create(rows, batch_size=500)
    is_postgresql, table = connection.vendor == "postgresql", StartUp._meta.db_table
    earlier = "{0} - n.i * interval '%d seconds'" if is_postgresql else "datetime({0}, '-' || (n.i * %d) || ' seconds')"
    columns = [str(field.column) for field in StartUp._meta.concrete_fields]
    values: dict[str, Any] = {"at": earlier % round(period.total_seconds()), "execution_id": "{0} || 'x' || n.i"}
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {copies - 1:d}) "
            f"INSERT INTO {table} ({', '.join(columns)}) "
            f"SELECT {', '.join(values.get(column, '{0}').format(f'row.{column}') for column in columns)} "
            f"FROM n CROSS JOIN (SELECT * FROM {table}) AS row"
        )
        if is_postgresql:
            cursor.execute("VACUUM ANALYZE")


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:] if text.isdigit()]
    in_database(lambda: measure(*(*given, *(1_000_000, 50)[len(given) :])))
