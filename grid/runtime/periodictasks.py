"""The periodic tasks of each web process, as `grid.controller.periodictasks` lists those of the leader."""

import time
from typing import TYPE_CHECKING

from grid.database.periodic import PeriodicTask, RunsIn
from grid.database.threads import background
from grid.logs import knowledge
from grid.models.dataplane import LOCAL
from grid.runtime.contention import ContentionNotices
from grid.runtime.outages import outages_task
from grid.runtime.poolsamples import PoolSampler
from grid.runtime.verbose import VerbosityFollower

if TYPE_CHECKING:
    from grid.runtime import Runtime

KNOWLEDGE_SECONDS = 10.0


def periodic_tasks(runtime: "Runtime") -> list[PeriodicTask]:
    """Return the tasks of a web process."""
    local = runtime.data_planes[LOCAL]
    return [
        knowledge_task(),
        PoolSampler(local, clock=time.time, monotonic=runtime.monotonic).periodic(),
        ContentionNotices(local.contention, runtime.executions).periodic(),
        local.templates.periodic(),
        VerbosityFollower("web", background.run).periodic(),
        outages_task(runtime, background.run),
    ]


def knowledge_task() -> PeriodicTask:
    """Return the task that reads what an admin has edited of the log findings; until it can, the entries before stay in force."""

    async def run_once() -> None:
        await background.run(knowledge.refresh)

    return PeriodicTask("knowledge base", KNOWLEDGE_SECONDS, run_once, RunsIn.EVERY_PROCESS)
