"""Runs of jobs on the stage, and what they measure. Its database is in memory, so no change feed tells of runs: the scenes do."""

import math

from asgiref.sync import sync_to_async
from django.utils import timezone

from grid.jobs.jobruns import advance_all
from grid.jobs.runmetrics import store
from grid.jobs.runmetrics.lines import Measurements
from grid.logs.logplace import LogPlace
from grid.models import Execution, RunMetric
from grid.runtime.executionrows import read_rows
from grid.runtime.written import runs_of_job
from tests.browser.server import Stage

STEPS = 2000


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


async def measure(stage: Stage, job: str, number: int, more: str = "") -> None:
    """The run measures a loss that falls and an accuracy that rises, each run another; and one more metric, when it is named."""
    await sync_to_async(_measure)(job, number, more)


def _measure(job: str, number: int, more: str) -> None:
    id = Execution.objects.get(run__job=job, run__number=number).pk
    known = store.read_place(id)
    first = RunMetric.objects.filter(execution=id, name="loss").values_list("count", flat=True).first() or 0
    steps = range(first, first + STEPS)
    values = {
        "loss": [(step, 2 * math.exp(-step / (300 + 150 * number)) + 0.05 * math.sin(step * number)) for step in steps],
        "accuracy": [(step, 1 - math.exp(-step / (300 + 150 * number))) for step in steps],
    }
    if more:
        values[more] = [(step, 1e-4 * step) for step in steps]
    measurements = Measurements(values, refused=3 if more else 0)
    assert store.add(id, known, LogPlace("2026-02-02T10:00:00", 1), measurements, now=timezone.now())
