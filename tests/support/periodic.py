"""Periodic tasks one at a time, as their runner runs them."""

import random
from datetime import UTC, datetime

from grid.database.periodic import PeriodicRunner, PeriodicTask
from grid.database.trouble import TroubleLog
from tests.support.virtual import loop_time


def _runner() -> PeriodicRunner:
    return PeriodicRunner(TroubleLog(loop_time), clock=lambda: datetime.now(UTC), rng=random.Random(1))


async def repeat(task: PeriodicTask) -> None:
    """Run the task until cancelled."""
    await _runner().run([task])
