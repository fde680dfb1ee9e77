"""What the tests of the queue and the rush planner put on the stage: launches that wait for a place, and a pool that may grow."""

from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async

from dashboard.starts import expected_waits as expected
from grid.configuration import WARM_PLACES
from grid.models import ConfigRecord, Environment, Execution, HardwareTier, RushPlan, StartUp, User
from grid.runtime.executionrows import read_rows
from tests.browser import administering, executing
from tests.browser.server import Stage
from tests.support.settings import change

OURS, THEIRS = "qqqq2222aa", "qqqq3333bb"
_RUNNING = "qqqq4444cc"
_HISTORY = 12  # launches that have ended, so that a wait can be expected
_period = pytest.MonkeyPatch()


async def two_people_wait(stage: Stage) -> None:
    """Of a tier's one place, which Bob's job has had for ten minutes, the next is Alice's and then Bob's."""
    _period.setattr(expected, "SECONDS", 0.2)  # instead of five, for which the test would wait at each step
    await executing.team(stage)
    await sync_to_async(_launches)()
    stage.runtime.executions.replace(await sync_to_async(read_rows)(stage.runtime.clock()))


async def end(stage: Stage) -> None:
    _period.undo()


def _launches() -> None:
    ConfigRecord.objects.all().delete()
    HardwareTier.objects.filter(pk="small").update(maximum_simultaneous=1)
    now = datetime.now(UTC)
    for number in range(_HISTORY):
        began = now - timedelta(hours=number + 2)
        lasted = timedelta(minutes=20 + number)
        executing._make(
            f"qqqq5555{number:02}",
            owner=("alice", "bob")[number % 2],
            state="succeeded",
            minutes=60 * (number + 2),
            slots_reserved_at=began,
            started_at=began + timedelta(seconds=10),
            ended_at=began + lasted,
            settled_at=began + lasted,
            slots_freed_at=began + lasted,
        )
    held = now - timedelta(minutes=10)
    executing._make(_RUNNING, owner="bob", state="running", minutes=10, slots_reserved_at=held, started_at=held)
    executing._make(OURS, owner="alice", state="queued", minutes=5, title="Ours")
    executing._make(THEIRS, owner="bob", state="queued", minutes=4, title="Theirs", project="vision")
    Execution.objects.queued().update(message="The tier Small is full.", reason_values=None)


async def before_a_course(stage: Stage) -> None:
    await sync_to_async(_clear_rush)()
    await administering.catalogues(stage)
    await sync_to_async(_write_starts)()


async def no_rush(stage: Stage) -> None:
    await sync_to_async(_clear_rush)()


def _clear_rush() -> None:
    RushPlan.objects.all().delete()
    StartUp.objects.all().delete()


def _write_starts() -> None:
    change(WARM_PLACES.key, "50", actor=User.objects.get(username="ada-admin"))
    tier, lab = HardwareTier.objects.get(pk="medium"), Environment.objects.get(pk="jupyterlab")
    StartUp.objects.bulk_create(
        StartUp(
            execution_id=f"rush{number}",
            at=datetime.now(UTC) - timedelta(days=number),
            ran=True,
            kind="workspace",
            tier=tier,
            environment=lab,
            node_pool=tier.node_pool,
            image=lab.image,
            total=400.0,
            node_started=True,
            node_wait=200.0 + number,
            image_cached=False,
            pulling=50.0,
        )
        for number in range(8)
    )
