"""What the charts of the node pools cost the database: reading a day, and writing a minute.

    .venv/bin/python -m benchmarks.poolsamples [POOLS]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names, with a day of samples of POOLS pools. Reported: the
fastest, the median and the slowest of 20 calls, in milliseconds.
"""

import statistics
import sys
import time
from collections.abc import Callable

from benchmarks.database import in_database

CALLS = 20
NOW = 29_400_000  # a minute in 2025


def measure(pools: int) -> None:
    from django.db import connection

    from dashboard.nodes.records import read_points, read_trends
    from dashboard.nodes.viewmodels.pool_history import SPARK_POINTS, moments, pool_charts, width_of
    from grid.models import PoolSample
    from grid.models.pool import ALL_POOLS
    from grid.runtime.poolsamples import KEPT_MINUTES, PoolTally, store

    names = [f"pool-{number:02d}" for number in range(pools)]
    fill([*names, ALL_POOLS], KEPT_MINUTES)
    first, minute = NOW - KEPT_MINUTES, NOW
    print(f"{connection.vendor}: {PoolSample.objects.count():,} rows of {pools} pools; ms of {CALLS} calls")

    def write() -> None:
        nonlocal minute
        minute += 1
        store(minute, dict.fromkeys([*names, ALL_POOLS], PoolTally(nodes=5)))

    report("a day of all pools together", lambda: read_points(ALL_POOLS, first, NOW))
    report("sparklines of all pools", lambda: read_trends(first, NOW, width_of(KEPT_MINUTES, SPARK_POINTS)))
    points = read_points(ALL_POOLS, first, NOW)
    report(
        "the charts' values of these",
        lambda: pool_charts(moments(points, width_of(KEPT_MINUTES), until=NOW), "24h", until=NOW),
    )
    report("whether the minute is taken", PoolSample.objects.filter(minute=NOW).exists)
    report("a minute written, one deleted", write)


def fill(names: list[str], minutes: int) -> None:
    from grid.models import PoolSample

    whole = ("nodes", "nodes_ready", "pods_waiting", "executions_running", "executions_waiting")
    amounts = [
        f"{part}_{unit}" for part in ("requested", "allocatable", "used") for unit in ("millicores", "mebibytes")
    ]
    columns = (*whole, *amounts, "requested_gpus", "allocatable_gpus")
    PoolSample.objects.bulk_create(
        (
            PoolSample(pool=name, minute=minute, **dict.fromkeys(columns, (minute * 7 + place) % 90000))
            for minute in range(NOW - minutes + 1, NOW + 1)
            for place, name in enumerate(names)
        ),
        batch_size=500,
    )


def report(name: str, call: Callable[[], object]) -> None:
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1000)
    print(f"{name:32}{min(taken):8.1f} {statistics.median(taken):8.1f} {max(taken):8.1f}")


if __name__ == "__main__":
    in_database(lambda: measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
