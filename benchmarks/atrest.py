"""What the controller costs while nothing happens: executions that all run, their pods, and nobody who changes anything.

    .venv/bin/python -m benchmarks.atrest [EXECUTIONS] [SECONDS] [--departed] [--statements] [--profile]

The real controller with its change feed, a SQLite file or the empty PostgreSQL database that DATABASE_URL names, rows and pods as the
product makes them, a cluster in memory whose answers are part of what is measured. Reported: how long the first looks take, and then the
CPU of the process as a share of one core, with the executions that were looked at, the calls of the database and the statements a minute;
of PostgreSQL also what its server counts. With `--departed` all owners have lost access before, and their executions' time is not over.
With `--statements` the most frequent statements are listed.
"""

import argparse
import asyncio
import cProfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks.database import in_database

if TYPE_CHECKING:
    from grid.controller.controller import Controller
    from grid.database.seam import Databases
    from grid.models import Execution
    from tests.support.cluster import FakeCluster

SLOTS = 25  # of a user
NODES = 200
NAMESPACE = "compute-grid"


def main(options: argparse.Namespace) -> None:
    from grid.models import Execution, Membership

    executions = running(options.executions)
    if options.departed:
        Membership.objects.all().delete()
        Execution.objects.update(access_lost_at=datetime.now(UTC))
        for row in executions:
            row.access_lost_at = datetime.now(UTC)
    asyncio.run(measure(executions, options))


class Statements:
    """Counts the statements of all connections that are opened in this process from now on, by their text."""

    def __init__(self) -> None:
        from django.db.backends.signals import connection_created

        self.counted: Counter[str] = Counter()
        connection_created.connect(self._connected)

    def _connected(self, connection: Any, **_: Any) -> None:
        if self._count not in connection.execute_wrappers:
            connection.execute_wrappers.append(self._count)

    def _count(self, execute: Any, sql: str, *rest: Any) -> Any:
        self.counted[sql] += 1
        return execute(sql, *rest)


def server_counts() -> tuple[int, int]:
    """Return the transactions of the database until now and the rows that it has read; (0, 0) of SQLite."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return 0, 0
    counts = "xact_commit + xact_rollback, tup_returned + tup_fetched"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counts} FROM pg_stat_database WHERE datname = current_database()")
        transactions, rows = cursor.fetchone()
    return int(transactions), int(rows)


def running(count: int) -> "Sequence[Execution]":
    """Executions that run, each with a slot of its owner's."""
    from grid.executions.launchsettings import LaunchSettings
    from grid.executions.progress import CREATED
    from grid.executions.spec import serialize_spec
    from grid.models import Environment, Execution, HardwareTier, Project, State, User

    environment = Environment.objects.create(id="lab", name="Lab", image="lab:4", port=8888)
    tier = HardwareTier.objects.create(id="small", name="Small", node_pool="default", cores="1", memory="1Gi")
    now = datetime.now(UTC)
    rows: list[Execution] = []
    for number in range(-(-count // SLOTS)):
        owner = User.objects.create(username=f"user-{number}")
        project = Project.objects.start(id=owner.username, name=owner.username, owner=owner)
        for _ in range(min(SLOTS, count - len(rows))):
            row = Execution(
                kind="workspace", owner=owner, project=project, environment=environment, tier=tier, state=State.RUNNING,
                reason=CREATED, requested_at=now, state_since=now, started_at=now, slots_reserved_at=now,
                node_name=f"node-{len(rows) % NODES}",
            )  # fmt: skip
            serialize_spec(row, central=LaunchSettings())
            rows.append(row)
    return Execution.objects.bulk_create(rows, batch_size=500)


def cluster_of(executions: "Sequence[Execution]") -> "FakeCluster":
    """A cluster in which the pods of all of them are ready."""
    from grid.kube.resources import PODS
    from tests.support.cluster import FakeCluster

    cluster = FakeCluster()
    for pod in pods_of(executions):
        cluster.put(PODS, pod)
    return cluster


def pods_of(executions: "Iterable[Execution]") -> Iterator[dict[str, Any]]:
    """Their pods as the product makes them, ready on the nodes that the rows name."""
    from grid.executions import manifests
    from grid.executions.spec import parse_spec
    from grid.executions.storage import Storage
    from grid.kube.resources import PODS
    from tests.support.builders import condition, container_status, stamp

    for row in executions:
        began = row.state_since
        wanted = manifests.build(
            parse_spec(row), namespace=NAMESPACE, token="token", anchor_uid=f"uid-{row.pk}", storage=Storage()
        )
        (pod,) = [manifest.body for manifest in wanted if manifest.resource == PODS]
        started = {"startedAt": stamp(began)}
        status = {
            "phase": "Running",
            "conditions": [condition("PodScheduled", "True", at=began), condition("Ready", "True")],
            "containerStatuses": [container_status(ready=True, state={"running": started})],
        }
        yield {**pod, "spec": {**pod["spec"], "nodeName": row.node_name}, "status": status}


async def measure(executions: "Sequence[Execution]", options: argparse.Namespace) -> None:
    from grid.database.seam import Databases
    from grid.database.threads import DatabaseThreads
    from grid.executions.reconcile import Reconciler
    from grid.models import UsageInterval

    calls = Counter[str]()
    reconcile, run = Reconciler.reconcile, DatabaseThreads.run

    async def counted(self: DatabaseThreads, work: Any, /, *args: Any, **kwargs: Any) -> Any:
        calls["database"] += 1
        return await run(self, work, *args, **kwargs)

    async def looked(self: Reconciler, execution_id: str) -> float | None:
        calls["look"] += 1
        return await reconcile(self, execution_id)

    Reconciler.reconcile, DatabaseThreads.run = looked, counted  # type: ignore[method-assign]
    threads = [DatabaseThreads(1, work) for work in ("reconciles", "polls", "due work")]
    for each in threads:
        each.open()
    statements, cluster = Statements(), cluster_of(executions)
    controller = controller_of(cluster, Databases(*(each.run for each in threads)))
    began, cpu = time.perf_counter(), time.process_time()
    task = asyncio.create_task(controller.run())
    while await UsageInterval.objects.acount() < len(executions) or not controller.idle:  # noqa: ASYNC110  no event of it
        await asyncio.sleep(0.5)
    print(f"first looks at {len(executions):,} executions: {time.perf_counter() - began:.0f} s, ", end="")
    print(f"{time.process_time() - cpu:.0f} s of CPU")
    await asyncio.sleep(15)  # until the server has counted what each session did
    before = await asyncio.to_thread(server_counts)
    calls.clear()
    statements.counted.clear()
    began, cpu = time.perf_counter(), time.process_time()
    profile = cProfile.Profile()
    if options.profile:
        profile.enable()
    await asyncio.sleep(options.seconds)
    profile.disable()
    took, used = time.perf_counter() - began, time.process_time() - cpu
    print(f"at rest for {took:.0f} s: {100 * used / took:.1f} % of a core; ", end="")
    await asyncio.to_thread(say_counts, calls, statements, before, took / 60, options.statements)
    if options.profile:
        profile.print_stats("cumulative")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.gather(*(each.close() for each in threads))


def controller_of(cluster: "FakeCluster", databases: "Databases") -> "Controller":
    """The real controller with its change feed, which does what it does beside a cluster that has endpoints."""
    from grid.controller.controller import Controller
    from grid.database.changefeed import CONTROLLER_PERIOD_SECONDS, feed_of
    from grid.executions.context import LaunchTarget
    from grid.kube.resources import ENDPOINTS
    from grid.models.dataplane import LOCAL

    api_server = {"name": "kubernetes", "namespace": "default"}
    cluster.put(ENDPOINTS, {"metadata": api_server, "subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]})
    feed = feed_of(period=CONTROLLER_PERIOD_SECONDS)
    assert feed is not None, "a file has a feed"
    controller = Controller(
        cluster, LaunchTarget(LOCAL, NAMESPACE, lambda id: "token", front_key=str), databases=databases
    )
    controller.listen_to(feed)
    return controller


def say_counts(calls: Counter[str], statements: Statements, before: tuple[int, int], minutes: float, most: int) -> None:
    counted, later = statements.counted.copy(), server_counts()
    print(f"{calls['look'] / minutes:.0f} looks, {calls['database'] / minutes:.0f} calls of the database", end="")
    print(f" and {counted.total() / minutes:.0f} statements a minute")
    if any(later):
        transactions, rows = ((now - then) / minutes for now, then in zip(later, before, strict=True))
        print(f"PostgreSQL: {transactions:.0f} transactions, {rows:,.0f} rows read a minute")
    for sql, count in counted.most_common(most):
        print(f"{count / minutes:8.1f}  {sql[:300]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("executions", type=int, nargs="?", default=10_000)
    parser.add_argument("seconds", type=float, nargs="?", default=120.0)
    parser.add_argument("--departed", action="store_true")
    parser.add_argument("--statements", type=int, nargs="?", const=40, default=0)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    in_database(lambda: main(given))
