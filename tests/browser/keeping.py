"""Scenes of an execution that is about to be stopped by rule."""

from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from grid.configuration import WORKSPACE_IDLE
from grid.models import ConfigRecord, Execution, StopPlan
from tests.browser import executing
from tests.browser.server import Stage


async def about_to_stop(stage: Stage, id: str) -> None:
    """A workspace of alice's that was idle for 52 minutes of 75."""
    await executing.team(stage)
    await executing.put(stage, id=id, state="running", title="Forgotten", minutes=300)

    def write() -> None:
        now = datetime.now(UTC)
        ConfigRecord.objects.update_or_create(key=WORKSPACE_IDLE.key, defaults={"value": "75"})
        Execution.objects.filter(pk=id).update(started_at=now - timedelta(hours=4))
        StopPlan.objects.create(
            execution_id=id,
            active_at=now - timedelta(minutes=52),
            looked_at=now,
            evidence="no kernel busy, no terminal activity, CPU under 1 %",
            cause="idle",
            stops_at=now + timedelta(minutes=23),
        )

    await sync_to_async(write)()
    await executing._take_in(stage)


async def no_limits(stage: Stage) -> None:
    await sync_to_async(ConfigRecord.objects.all().delete)()
