"""Schedules that are due: one look without the loop of the controller, and the scheduler itself."""

from collections.abc import Callable
from datetime import datetime
from typing import ParamSpec, TypeVar

from grid.jobs.scheduler import JobScheduler, look_at_due, run_schedule

P = ParamSpec("P")
T = TypeVar("T")


def run_due(*, now: datetime) -> None:
    for due in look_at_due(now).due:
        run_schedule(due.id, now=now)


async def inline(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    return work(*args, **kwargs)


def job_scheduler(clock: Callable[[], datetime]) -> JobScheduler:
    return JobScheduler(inline, clock)
