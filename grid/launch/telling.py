"""What the leader tells people, beside everything else that it does: `run` until cancelled."""

import asyncio
import random

from grid.databasetrouble import TroubleLog
from grid.launch.context import Context
from grid.launch.deadlines import DeadlineWatch
from grid.launch.notifications.sender import Sender


async def run(context: Context, troubles: TroubleLog, rng: random.Random) -> None:
    """Send notifications, and notice timeouts that come near."""
    watch = DeadlineWatch(context.pods.values, context.database, context.clock, troubles, rng)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(Sender(context.database, context.clock, troubles, rng).run())
        tasks.create_task(watch.run())
