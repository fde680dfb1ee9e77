"""What the leader tells people, and does after it has told them, beside everything else: `run` until cancelled."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from django.conf import settings

from grid.alerts.alertmanager import Alertmanager
from grid.alerts.passing import SilencePasser
from grid.alerts.telling import AlertTeller
from grid.announcements.keeper import MaintenanceKeeper
from grid.database.trouble import TroubleLog
from grid.executions.context import Context
from grid.jobs.deadlines import DeadlineWatch
from grid.notifications.sender import Sender
from grid.queue.queuewatch import QueueWatch
from grid.usage.budgets.keeper import BudgetKeeper
from grid.workspaces.shutdown.observer import PodObserver
from grid.workspaces.shutdown.watch import ShutdownWatch


async def run(
    context: Context, troubles: TroubleLog, rng: random.Random, *, known: Callable[[], Awaitable[None]]
) -> None:
    """Send notifications, notice what comes near (timeouts, lines of budgets, maintenance, alerts, places in the queue), and make the stops
    that follow.

    `known` waits until it is known what ended while nobody led.
    """
    database, clock = context.due_work, context.clock
    deadlines = DeadlineWatch(context.pods.values, database, clock, troubles, rng)
    shutdown = ShutdownWatch(context.target.data_plane, database, clock, troubles, rng, PodObserver(context))
    alertmanager = Alertmanager(settings.ALERTMANAGER_URL) if settings.ALERTMANAGER_URL else None
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(Sender(database, clock, troubles, rng).run())
        tasks.create_task(deadlines.run())
        tasks.create_task(shutdown.run())
        tasks.create_task(BudgetKeeper(database, clock, troubles, rng).run(after=known))
        tasks.create_task(MaintenanceKeeper(database, clock, troubles, rng).run())
        tasks.create_task(SilencePasser(alertmanager, database, clock, troubles, rng).run())
        tasks.create_task(AlertTeller(database, clock, troubles, rng).run())
        tasks.create_task(QueueWatch(context, troubles, rng).run())
