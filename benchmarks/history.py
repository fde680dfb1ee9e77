"""What history costs: every query of a decision, of the controller's poll and of a list, with few and with a million ended executions.

    .venv/bin/python -m benchmarks.history [ENDED] [ACTIVE]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names. Executions are of 1,000 users in 200 projects on
20 tiers; each ended one has one line of history. Reported: the median and the slowest of 20 calls, in milliseconds, after
1,000 ended executions (the baseline) and after ENDED, with ACTIVE that run or wait.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.database import in_database

USERS, PROJECTS, TIERS = 1000, 200, 20
FEW = 1000
CALLS = 20
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def measure(ended: int, active: int) -> None:
    from django.db import connection

    people()
    executions(0, active, is_ended=False)
    executions(active, FEW, is_ended=True)
    before = timed_all()
    multiply_ended(ended // FEW - 1)
    after = timed_all()
    print(f"{connection.vendor}: {active:,} active; median and slowest of {CALLS} calls, ms")
    print(f"{'':28}{f'{FEW:,} ended':>20}{f'{ended:,} ended':>20}")
    for name in before:
        print(f"{name:28}{'{:8.1f} {:8.1f}'.format(*before[name]):>20}{'{:8.1f} {:8.1f}'.format(*after[name]):>20}")


def people() -> None:
    from grid.models import Environment, HardwareTier, Membership, Project, User

    Environment.objects.create(id="lab", name="Lab", image="lab:4", port=8888)
    HardwareTier.objects.bulk_create(
        HardwareTier(id=f"t{number}", name=f"T{number}", node_pool="default", cores="1", memory="1Gi")
        for number in range(TIERS)
    )
    User.objects.bulk_create(User(username=f"user-{number}") for number in range(USERS))
    users = list(User.objects.order_by("pk"))
    Project.objects.bulk_create(Project(id=f"p{number}", name=f"P{number}") for number in range(PROJECTS))
    roles = Membership.Role
    Membership.objects.bulk_create(
        Membership(
            project_id=f"p{number % PROJECTS}", user=user, role=roles.OWNER if number < PROJECTS else roles.CONTRIBUTOR
        )
        for number, user in enumerate(users)
    )


def executions(first: int, count: int, *, is_ended: bool) -> None:
    """Half of the active ones run and half wait; the ended ones ended a minute after one another."""
    from grid.models import Execution, LifecycleEntry, State, User
    from grid.models.dataplane import LOCAL

    users = list(User.objects.order_by("pk").values_list("pk", flat=True))

    def execution(number: int) -> Execution:
        asked = NOW - timedelta(minutes=number)
        columns: dict[str, Any] = {"state": State.QUEUED, "reason": "over_user_slots", "message": "Position 1."}
        if is_ended:
            columns = {"state": State.SUCCEEDED, "ended_at": asked, "settled_at": asked}
        elif number % 2:
            columns = {"state": State.RUNNING}
        if is_ended or number % 2:
            columns |= {"slots_reserved_at": asked, "slots_freed_at": asked if is_ended else None}
        place = number % USERS
        return Execution(
            id=f"e{number:09}", kind="workspace", title=f"Run {number}", owner_id=users[place], environment_id="lab",
            project_id=f"p{place % PROJECTS}", tier_id=f"t{number % TIERS}", data_plane_id=LOCAL, requested_at=asked,
            spec={"tier": {"name": "T"}, "environment": {"name": "Lab"}}, node_pool="default", millicores=1000,
            memory_bytes=2**30, gpus=0, price_per_hour="0.5", **columns,
        )  # fmt: skip

    rows = Execution.objects.bulk_create(map(execution, range(first, first + count)), batch_size=1000)
    LifecycleEntry.objects.bulk_create(
        LifecycleEntry(execution=row, at=row.requested_at, to_state=row.state, reason="ended") for row in rows
    )


def multiply_ended(times: int) -> None:
    """Repeat the ended executions so many times, each time earlier, with their lines of history, within the database. PostgreSQL counts
    its rows then, as it does by itself; SQLite never does in the product, and plans otherwise once it has."""
    from django.db import connection

    from grid.database import triggers
    from grid.models import Execution, LifecycleEntry

    quote, is_postgresql = connection.ops.quote_name, connection.vendor == "postgresql"
    earlier = "{0} - n.i * interval '1 day'" if is_postgresql else "datetime({0}, '-' || n.i || ' days')"
    copied_id = "'c' || n.i || 'x' || substr({0}, 5)"
    copies = {
        Execution: {"id": copied_id} | dict.fromkeys(("requested_at", "ended_at", "settled_at"), earlier),
        LifecycleEntry: {"execution_id": copied_id},
    }
    triggers.take_away(connection.alias, plan=True)  # nobody listens
    with connection.cursor() as cursor:
        for model, copied in copies.items():
            fields = [field for field in model._meta.concrete_fields if field.get_internal_type() != "BigAutoField"]
            columns = [str(field.column) for field in fields]
            table = quote(model._meta.db_table)
            values = [copied.get(column, "{0}").format(f"row.{quote(column)}") for column in columns]
            is_ended = "row.settled_at IS NOT NULL" if model is Execution else "row.to_state = 'succeeded'"
            cursor.execute(
                f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times:d}) "
                f"INSERT INTO {table} ({', '.join(map(quote, columns))}) "
                f"SELECT {', '.join(values)} FROM n CROSS JOIN (SELECT * FROM {table} AS row WHERE {is_ended}) AS row"
            )
        if is_postgresql:
            cursor.execute("VACUUM ANALYZE")
    triggers.install(connection.alias, plan=())


def work() -> Mapping[str, Callable[[], object]]:
    from dashboard.executions.launch_facts import running_by_tier, slots_of
    from dashboard.tiers.tier_records import outgrown
    from grid.clusters import attached
    from grid.executions import ledger
    from grid.executions.launchrequest import LaunchRequest
    from grid.executions.request import submit
    from grid.models import Environment, HardwareTier, Project, User
    from grid.models.dataplane import LOCAL
    from grid.projects import departures
    from grid.queue import snapshot
    from grid.queue.launches import why_not_launch
    from grid.runtime.executionrows import read_rows, read_versions

    owner, project = User.objects.get(username="user-7"), Project.objects.get(pk="p7")
    launch = LaunchRequest(owner, project, Environment.objects.get(), HardwareTier.objects.get(pk="t0"), "workspace")
    return {
        "launch": lambda: submit(launch, gate=why_not_launch, now=NOW),
        "what admission decides on": lambda: snapshot.take(LOCAL, now=NOW),
        "controller: what changed": lambda: ledger.row_versions(LOCAL),
        "controller: one execution": lambda: ledger.read("e000000001"),
        "controller: clusters alone": lambda: attached.stop_with_parents(LOCAL, now=NOW),
        "controller: who has left": lambda: departures.stop_departed(LOCAL, now=NOW),
        "web: whether a list changed": lambda: read_versions(NOW),
        "web: all that lists show": lambda: read_rows(NOW),
        "web: one row that was written": lambda: read_rows(NOW, ids={"e000000001"}),
        "web: free slots of a user": lambda: slots_of(owner),
        "web: what runs on each tier": lambda: running_by_tier(snapshot.held_slots()),
        "web: who would no longer fit": lambda: outgrown(HardwareTier.objects.all(), {}, {}),
    }


def timed_all() -> dict[str, tuple[float, float]]:
    """Milliseconds, median and slowest, of each kind of work; nothing that it writes is kept."""
    from django.db import transaction

    times_of = {}
    for name, call in work().items():
        times = []
        for _ in range(CALLS):
            with transaction.atomic():
                began = time.perf_counter()
                call()
                times.append((time.perf_counter() - began) * 1000)
                transaction.set_rollback(True)
        times_of[name] = (statistics.median(times), max(times))
    return times_of


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    in_database(lambda: measure(*numbers, *(1_000_000, 2_000)[len(numbers) :]))
