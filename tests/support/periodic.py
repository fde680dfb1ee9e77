"""Periodic tasks one at a time, as their runner runs them."""

import asyncio
import random
from datetime import UTC, datetime

from grid.database.periodic import PeriodicRunner, PeriodicTask, TaskRecord
from grid.database.trouble import TroubleLog
from tests.support.virtual import cancelled, loop_time, passes


def _runner() -> PeriodicRunner:
    return PeriodicRunner(TroubleLog(loop_time), clock=lambda: datetime.now(UTC), rng=random.Random(1))


async def repeat(task: PeriodicTask) -> None:
    """Run the task until cancelled."""
    await _runner().run([task])


async def record_of(task: PeriodicTask, *, after: float) -> TaskRecord:
    """Run the task for so many seconds, and return how it went."""
    runner = _runner()
    running = asyncio.create_task(runner.run([task]))
    await passes(after)
    await cancelled(running)
    return runner.records[0]
