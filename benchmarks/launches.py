"""How many launches a second the controller admits and creates: real database, cluster in memory that answers at once.

    .venv/bin/python -m benchmarks.launches [LAUNCHES] [--history ENDED] [--at-once THREADS]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names, with ENDED executions of history. Many users
launch more than their slots allow, so that some wait; one after the other, or THREADS at once as in a web process, which has 24 for
requests. Reported: rows written by the form's side, admissions a second (one transaction), each with the CPU of this process and of
PostgreSQL's for it, the statements that took longest and the one that took most of this process's CPU; and the time from the first poll
until every admitted pod exists. No slot may be given twice.
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psutil

from benchmarks import history
from benchmarks.database import in_database

SLOTS = 25
USERS = 40
SLOWEST = 3


@dataclass
class Spent:
    """Seconds of one step, by the clock, of this process and of the server's, and what its statements took, the slowest of each text."""

    wall: float = 0.0
    cpu: float = 0.0
    server_cpu: float = 0.0
    statements: dict[str, tuple[float, float]] = field(default_factory=dict)

    def watch(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        began, own = time.perf_counter(), time.thread_time()
        try:
            return execute(sql, params, many, context)
        finally:
            took = time.perf_counter() - began, time.thread_time() - own
            self.statements[sql] = max(self.statements.get(sql, (0.0, 0.0)), took)

    def report(self, what: str, count: int) -> None:
        each = f"{self.cpu * 1000 / count:.1f} ms of CPU each, {self.server_cpu * 1000 / count:.1f} of the server"
        print(f"{what} {count} in {self.wall:.2f} s: {count / self.wall:.0f}/s; {each}")
        slowest = sorted(self.statements.items(), key=lambda entry: entry[1], reverse=True)[:SLOWEST]
        for sql, (wall, cpu) in [*slowest, max(self.statements.items(), key=lambda entry: entry[1][1])]:
            kind, _, wanted = " ".join(sql.replace('"', "").split()).partition(" WHERE ")
            print(f"  {wall * 1000:6.1f} ms ({cpu * 1000:.1f} of CPU) {kind[:40]} ... {wanted[-60:]}")


@contextmanager
def spending() -> Iterator[Spent]:
    """Watch this thread's connection, and those that others make meanwhile."""
    from django.db import connection
    from django.db.backends.signals import connection_created

    def watch_another(connection: Any, **_: object) -> None:
        connection.execute_wrappers.append(spent.watch)

    spent, served, began, own = Spent(), server_cpu(), time.perf_counter(), time.process_time()
    connection_created.connect(watch_another)
    with connection.execute_wrapper(spent.watch):
        yield spent
    connection_created.disconnect(watch_another)
    spent.wall, spent.cpu = time.perf_counter() - began, time.process_time() - own
    spent.server_cpu = server_cpu() - served


def server_cpu() -> float:
    """Seconds of PostgreSQL's processes for our connections, which have to be on this machine; 0 of SQLite, which has none."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return 0.0
    ours = "datname = current_database() AND backend_type = 'client backend'"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pid FROM pg_stat_activity WHERE {ours}")
        times = [psutil.Process(pid).cpu_times() for (pid,) in cursor.fetchall()]
    return float(sum(each.user + each.system for each in times))


def in_threads(work: Callable[[int], object], numbers: Sequence[int], at_once: int) -> Spent:
    """Do the work for each number in so many of the product's threads."""
    from django.db import connections

    from grid.database.threads import DatabaseThreads

    connections.settings["default"]["CONN_MAX_AGE"] = None  # or no process of the server is left to say its CPU

    def share(first: int) -> None:
        for number in numbers[first::at_once]:
            work(number)

    threads = DatabaseThreads(at_once, "launches")
    threads.open()
    assert threads.executor is not None
    with spending() as spent:
        for done in [threads.executor.submit(share, first) for first in range(at_once)]:
            done.result()
    asyncio.run(threads.close())
    return spent


def measure(launches: int, ended: int, at_once: int) -> None:
    from django.core.management import call_command
    from django.db.models import Count

    from grid.configuration import GLOBAL_QUEUE_LIMIT
    from grid.executions.launchrequest import LaunchRequest
    from grid.executions.request import submit
    from grid.models import Environment, Execution, HardwareTier, Project, User
    from grid.models.dataplane import LOCAL
    from grid.queue.launches import why_not_launch
    from tests.support.shop import admit_waiting

    call_command("migrate", verbosity=0)
    history.people()
    if ended:
        history.executions(0, history.FEW, is_ended=True)
        history.multiply_ended(ended // history.FEW - 1)
        print(f"{Execution.objects.count()} executions have ended")
    environment = Environment.objects.get(id="lab")
    tier = HardwareTier.objects.create(id="small", name="Small", node_pool="default", cores="1", memory="1Gi")
    users = [User.objects.create(username=f"owner-{number}") for number in range(USERS)]
    projects = [Project.objects.start(id=user.username, name=user.username, owner=user) for user in users]
    limit = GLOBAL_QUEUE_LIMIT.default

    def launch(number: int) -> None:
        owner, project = users[number % USERS], projects[number % USERS]
        submit(
            LaunchRequest(owner, project, environment, tier, "workspace"), gate=why_not_launch, now=datetime.now(UTC)
        )

    for what, numbers in (
        ("launched", range(min(launches, limit))),
        ("launched into a full queue", range(limit, launches)),
    ):
        if numbers:
            in_threads(launch, numbers, at_once).report(what, len(numbers))
    with spending() as admitting:
        admitted = len(admit_waiting(LOCAL, now=datetime.now(UTC)))
    admitting.report("admitted", admitted)
    created_took = asyncio.run(create(admitted))
    held = Execution.objects.holding_slots().order_by().values("owner").annotate(slots=Count("pk"))
    assert all(row["slots"] <= SLOTS for row in held), "a slot was given twice"
    assert admitted == min(launches, USERS * SLOTS), "a slot was left free"
    print(f"created  {admitted} in {created_took:.2f} s: {admitted / created_took:.0f}/s")


async def create(expected: int) -> float:
    """Seconds from the controller's start until all pods exist and are noted."""
    from asgiref.sync import sync_to_async

    from grid.controller.controller import Controller
    from grid.executions.context import LaunchTarget
    from grid.models import Execution
    from grid.models.dataplane import LOCAL
    from tests.support.cluster import FakeCluster

    noted = sync_to_async(lambda: Execution.objects.unsettled().filter(reason="created").count())
    controller = Controller(FakeCluster(), LaunchTarget(LOCAL, "compute-grid", lambda id: "token", front_key=str))
    began = time.perf_counter()
    task = asyncio.create_task(controller.run())
    while await noted() < expected:  # noqa: ASYNC110 - a row cannot wake anybody
        await asyncio.sleep(0.05)
    took = time.perf_counter() - began
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return took


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("launches", type=int, nargs="?", default=1050)
    parser.add_argument("--history", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=1)
    given = parser.parse_args()
    in_database(lambda: measure(given.launches, given.history, given.at_once))
