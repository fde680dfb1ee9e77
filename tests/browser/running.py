"""Runs of jobs on the stage. Its database is in memory, so no change feed tells of them: the scenes do."""

from asgiref.sync import sync_to_async
from django.utils import timezone

from grid.jobs.jobruns import advance_all
from grid.models import Execution
from grid.runtime.executionrows import read_rows
from grid.runtime.written import runs_of_job
from tests.browser.server import Stage


async def begin_run(stage: Stage, job: str, number: int) -> None:
    """The run's execution runs; only its own topic tells, as for a change that the controller writes."""
    now = timezone.now()
    rows = Execution.objects.filter(run__job=job, run__number=number)
    await rows.aupdate(state="running", state_since=now, started_at=now, updated_at=now)
    stage.runtime.executions.replace(await sync_to_async(read_rows)(stage.runtime.clock()))


async def end_run(stage: Stage, job: str, number: int, state: str = "succeeded", message: str = "") -> None:
    now = timezone.now()
    rows = Execution.objects.filter(run__job=job, run__number=number)
    await rows.aupdate(state=state, message=message, reason_values=None, ended_at=now, settled_at=now, updated_at=now)
    await sync_to_async(advance_all)({job}, now=now)
    stage.runtime.hub.publish(runs_of_job(job))
