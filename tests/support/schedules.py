"""Schedules that are due: one look without the loop of the controller, and the scheduler itself."""

import random
from collections.abc import Callable
from datetime import datetime
from typing import ParamSpec, TypeVar

from grid.database.trouble import TroubleLog
from grid.jobs.scheduler import JobScheduler, look_at_due, run_schedule
from tests.support.virtual import loop_time

P = ParamSpec("P")
T = TypeVar("T")


def run_due(*, now: datetime) -> None:
    for due in look_at_due(now).due:
        run_schedule(due.id, now=now)


async def inline(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    return work(*args, **kwargs)


def job_scheduler(clock: Callable[[], datetime]) -> JobScheduler:
    return JobScheduler(inline, clock, TroubleLog(loop_time), random.Random(1))
