"""How long each step of dropping old executions holds the database: the transactions in which others wait, on SQLite.

    .venv/bin/python -m benchmarks.retention [OLD]

OLD executions that ended long ago, each with one time on a node, a log and twenty lines of history, beside as many that stay. Reported:
how many steps it took, and in milliseconds the median, the 99th percentile and the slowest, by the clock and of the process's own time,
which a busy machine does not lengthen. The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names.
"""

import statistics
import sys
import time
from datetime import timedelta

from benchmarks.database import in_database
from benchmarks.history import NOW, executions, people

LINES = 20


def measure(old: int) -> None:
    from django.db import connection

    from grid.controller.housekeeping import BATCH
    from grid.controller.retention import drop_executions
    from grid.models import DailyUsage, Execution

    people()
    executions(0, 2 * old, is_ended=True)
    what_hangs_on_them()
    # They ended a minute after one another: the older half is due.
    later = NOW - timedelta(minutes=old) + timedelta(days=730)
    clock, cpu = list[float](), list[float]()
    while True:
        began, cpu_began = time.perf_counter(), time.process_time()
        if not drop_executions(later, BATCH):
            break
        clock.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - cpu_began) * 1000)
    dropped = 2 * old - Execution.objects.count()
    print(f"{connection.vendor}: {dropped:,} dropped, {DailyUsage.objects.count():,} daily rows, {len(clock):,} steps")
    for name, times in (("clock", clock), ("CPU", cpu)):
        last = sorted(times)[int(len(times) * 0.99)]
        print(f"{name:6}{statistics.median(times):8.1f}{last:8.1f}{max(times):8.1f}")


def what_hangs_on_them() -> None:
    from grid.models import Execution, ExecutionLog, LifecycleEntry, UsageInterval

    rows = Execution.objects.filter(ended_at__isnull=False).order_by("pk")
    for id, owner, project, tier, ended_at in rows.values_list("pk", "owner", "project", "tier", "ended_at"):
        assert ended_at is not None, "the query asked for it"
        UsageInterval.objects.create(
            execution_id=id, pod_uid=id, pod_name=id, node_name="n", owner_id=owner, project_id=project, tier_id=tier,
            node_pool="default", millicores=1000, mebibytes=1024, gpus=0, price_per_hour="0.5",
            began_at=ended_at - timedelta(hours=1), ended_at=ended_at, seconds=3600,
        )  # fmt: skip
        ExecutionLog.objects.create(execution_id=id, text="line\n" * 1000, at=ended_at)
        LifecycleEntry.objects.bulk_create(
            LifecycleEntry(execution_id=id, at=ended_at, source="kubernetes", event_uid=f"e{line}", reason="Pulled")
            for line in range(LINES)
        )


if __name__ == "__main__":
    in_database(lambda: measure(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
