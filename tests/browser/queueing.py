"""What the browser test of the queue puts on the stage: a tier with one place,
which is taken, and launches of two people that wait for it."""

from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async

from dashboard.starts import expected_waits as expected
from grid.models import ConfigRecord, Execution, HardwareTier
from grid.runtime.executionrows import read_rows
from tests.browser import executing
from tests.browser.server import Stage

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
