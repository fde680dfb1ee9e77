"""How long a write of one process takes to be in the snapshot of another, told by the change feed and, as the baseline, found by asking.

    .venv/bin/python -m benchmarks.replicas [ACTIVE] [CHANGES]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names, with ACTIVE executions that run or wait. One
process writes CHANGES of them, ten a second, each in a transaction of its own; the other follows and somebody looks at its list.
Reported: milliseconds from the commit to the row, and what the follower's CPU did meanwhile, for each change.
"""

import asyncio
import json
import os
import subprocess
import sys
import time

from benchmarks.database import in_database, set_up
from benchmarks.history import NOW, executions, people

SECONDS_BETWEEN = 0.1


def main(active: int, changes: int) -> None:
    from django.db import connection

    people()
    executions(0, active, is_ended=False)
    print(f"{connection.vendor}: {active:,} active, {changes} changes, {1 / SECONDS_BETWEEN:.0f} a second")
    print(f"{'':8}{'p50':>8}{'p95':>8}{'p99':>8}   CPU of a change, ms")
    for way in ("told", "asked"):
        latencies, cpu = measured(way, active, changes)
        at = [latencies[min(len(latencies) - 1, int(len(latencies) * share))] for share in (0.5, 0.95, 0.99)]
        print(f"{way:8}{at[0]:8.1f}{at[1]:8.1f}{at[2]:8.1f}   {cpu / changes * 1000:.2f}")


def measured(way: str, active: int, changes: int) -> tuple[list[float], float]:
    """Latencies in milliseconds, sorted, and the follower's CPU seconds."""
    from django.db.models import F

    from grid.models import Execution

    command = [sys.executable, "-m", "benchmarks.replicas", "follow", way, str(changes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "ready\n"
        written: dict[str, float] = {}
        for number in range(changes):
            id, title = f"e{number % active:09}", f"{way} {number}"
            Execution.objects.filter(pk=id).update(title=title, revision=F("revision") + 1)
            written[title] = time.time()
            time.sleep(SECONDS_BETWEEN)
        report = json.loads(follower.stdout.readline())
    return sorted((at - written[title]) * 1000 for title, at in report["seen"].items()), report["cpu"]


async def follow(way: str, changes: int) -> None:
    from grid.database.changefeed import feed_of
    from grid.kube.hub import Hub
    from grid.runtime.executions import TOPIC, ActiveExecutions

    hub = Hub()
    snapshot = ActiveExecutions(hub, clock=lambda: NOW, feed=feed_of() if way == "told" else None)
    running = asyncio.create_task(snapshot.run())
    seen: dict[str, float] = {}
    with hub.subscribe({TOPIC}) as subscription:
        await subscription.changed()
        await asyncio.sleep(2)
        print("ready", flush=True)
        began = time.process_time()
        known = {row.id: row for row in snapshot.values()}
        while len(seen) < changes:
            await subscription.changed()
            now = time.time()
            for row in snapshot.values():
                if known[row.id] is not row and row.title.startswith(way):
                    seen.setdefault(row.title, now)
            known = {row.id: row for row in snapshot.values()}
        cpu = time.process_time() - began
    running.cancel()
    print(json.dumps({"seen": seen, "cpu": cpu}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["follow"]:
        set_up(os.environ["GRID_VAR"])
        asyncio.run(follow(sys.argv[2], int(sys.argv[3])))
    else:
        numbers = [int(argument) for argument in sys.argv[1:]]
        in_database(lambda: main(*numbers, *(2_000, 200)[len(numbers) :]))
