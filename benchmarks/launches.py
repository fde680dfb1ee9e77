"""How many launches a second the controller admits and creates: real database file, cluster in memory that answers at once.

    .venv/bin/python -m benchmarks.launches [LAUNCHES]

Many users launch more than their slots allow, so that some wait. Reported: rows written by the form's side, admissions a second
(one transaction), and the time from the first poll until every admitted pod exists. No slot may be given twice.
"""

import asyncio
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

SLOTS = 25
USERS = 40


def main(launches: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"GRID_VAR": folder, "GRID_SECRET_KEY": "benchmark", "GRID_LOG_LEVEL": "WARNING"}
        os.environ["DATABASE_URL"] = f"sqlite:///{Path(folder) / 'grid.sqlite3'}"
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "grid.settings")
        import django

        django.setup()
        measure(launches)


def measure(launches: int) -> None:
    from django.core.management import call_command
    from django.db.models import Count

    from grid.launch import admission
    from grid.launch.request import LaunchRequest, submit
    from grid.models import Environment, Execution, HardwareTier, Project, User
    from grid.models.dataplane import LOCAL

    call_command("migrate", verbosity=0)
    environment = Environment.objects.create(id="lab", name="Lab", image="lab:4", port=8888)
    tier = HardwareTier.objects.create(id="small", name="Small", node_pool="default", cores="1", memory="1Gi")
    users = [User.objects.create(username=f"user-{number}") for number in range(USERS)]
    projects = [Project.objects.start(id=user.username, name=user.username, owner=user) for user in users]
    began = time.perf_counter()
    for number in range(launches):
        owner, project = users[number % USERS], projects[number % USERS]
        submit(LaunchRequest(owner, project, environment, tier, "workspace"), now=datetime.now(UTC))
    written = time.perf_counter() - began
    began = time.perf_counter()
    admitted = len(admission.admit_waiting(LOCAL, now=datetime.now(UTC)))
    admission_took = time.perf_counter() - began
    created_took = asyncio.run(create(admitted))
    held = Execution.objects.filter(slots_reserved_at__isnull=False).values("owner").annotate(slots=Count("pk"))
    assert all(row["slots"] <= SLOTS for row in held), "a slot was given twice"
    assert admitted == min(launches, USERS * SLOTS), "a slot was left free"
    print(f"launched {launches} in {written:.2f} s: {launches / written:.0f}/s")
    print(f"admitted {admitted} in {admission_took:.2f} s: {admitted / admission_took:.0f}/s")
    print(f"created  {admitted} in {created_took:.2f} s: {admitted / created_took:.0f}/s")


async def create(expected: int) -> float:
    """Seconds from the controller's start until all pods exist and are noted."""
    from asgiref.sync import sync_to_async

    from grid.launch.context import LaunchTarget
    from grid.launch.controller import Controller
    from grid.models import Execution
    from grid.models.dataplane import LOCAL
    from tests.support.cluster import FakeCluster

    noted = sync_to_async(lambda: Execution.objects.filter(reason="created").count())
    controller = Controller(FakeCluster(), LaunchTarget(LOCAL, "compute-grid", lambda id: "token"))
    began = time.perf_counter()
    task = asyncio.create_task(controller.run())
    while await noted() < expected:  # noqa: ASYNC110 - a row cannot wake anybody
        await asyncio.sleep(0.05)
    took = time.perf_counter() - began
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return took


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1200)
