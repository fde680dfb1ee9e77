"""What the controller costs while nothing happens: executions that all run, their pods, and nobody who changes anything.

    .venv/bin/python -m benchmarks.atrest [EXECUTIONS] [SECONDS] [--profile]

The real controller with its change feed, a SQLite file, rows and pods as the product makes them, a cluster in memory whose answers
are part of what is measured. Reported: how long the first looks take, and then the CPU of the process as a share of one core, with
the executions that were looked at and the queries that were made a minute.
"""

import argparse
import asyncio
import cProfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks.database import in_database

if TYPE_CHECKING:
    from grid.models import Execution
    from tests.support.cluster import FakeCluster

SLOTS = 25  # of a user
NODES = 200
NAMESPACE = "compute-grid"


def main(options: argparse.Namespace) -> None:
    asyncio.run(measure(running(options.executions), options))


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
    from grid.executions import manifests
    from grid.executions.spec import parse_spec
    from grid.executions.storage import Storage
    from grid.kube.resources import PODS
    from tests.support.builders import condition, container_status, stamp
    from tests.support.cluster import FakeCluster

    cluster = FakeCluster()
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
        cluster.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": row.node_name}, "status": status})
    return cluster


async def measure(executions: "Sequence[Execution]", options: argparse.Namespace) -> None:
    from grid.controller.controller import Controller
    from grid.database.changefeed import CONTROLLER_PERIOD_SECONDS, feed_of
    from grid.database.seam import Databases
    from grid.database.threads import background
    from grid.executions.context import LaunchTarget
    from grid.executions.reconcile import Reconciler
    from grid.models import UsageInterval
    from grid.models.dataplane import LOCAL

    queries = looks = 0
    reconcile = Reconciler.reconcile

    async def counted(work: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal queries
        queries += 1
        return await background.run(work, *args, **kwargs)

    async def looked(self: Reconciler, execution_id: str) -> float | None:
        nonlocal looks
        looks += 1
        return await reconcile(self, execution_id)

    Reconciler.reconcile = looked  # type: ignore[method-assign]
    cluster, feed = cluster_of(executions), feed_of(period=CONTROLLER_PERIOD_SECONDS)
    controller = Controller(
        cluster, LaunchTarget(LOCAL, NAMESPACE, lambda id: "token", front_key=str), databases=Databases.shared(counted)
    )
    assert feed is not None, "a file has a feed"
    controller.listen_to(feed)
    began, cpu = time.perf_counter(), time.process_time()
    task = asyncio.create_task(controller.run())
    while await UsageInterval.objects.acount() < len(executions) or not controller.idle:  # noqa: ASYNC110  no event of it
        await asyncio.sleep(0.5)
    print(f"first looks at {len(executions):,} executions: {time.perf_counter() - began:.0f} s, ", end="")
    print(f"{time.process_time() - cpu:.0f} s of CPU")
    await asyncio.sleep(5)
    queries = looks = 0
    began, cpu = time.perf_counter(), time.process_time()
    profile = cProfile.Profile()
    if options.profile:
        profile.enable()
    await asyncio.sleep(options.seconds)
    profile.disable()
    took, used = time.perf_counter() - began, time.process_time() - cpu
    print(f"at rest for {took:.0f} s: {100 * used / took:.1f} % of a core; ", end="")
    print(f"{looks * 60 / took:.0f} looks and {queries * 60 / took:.0f} calls of the database a minute")
    if options.profile:
        profile.print_stats("cumulative")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("executions", type=int, nargs="?", default=10_000)
    parser.add_argument("seconds", type=float, nargs="?", default=120.0)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    in_database(lambda: main(given))
