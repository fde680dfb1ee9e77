"""What the charts' browser tests put on the stage: a busy day with what was sampled in it."""

import time
from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from dashboard.nodes.pages import use_history
from grid.metrics.usage import Measured, RecentUsage, Usage
from grid.models import PoolSample
from tests.browser import overviewing, scenes
from tests.browser.server import Stage
from tests.shell.charting import make_day
from tests.support.builders import container_status, stamp


async def unsampled_day(stage: Stage) -> None:
    await overviewing.busy_day(stage)
    await sync_to_async(PoolSample.objects.all().delete)()
    use_history._pool_histories.clear()  # what is kept of a scene before


async def sampled_day(stage: Stage) -> None:
    await unsampled_day(stage)
    await sync_to_async(make_day)(datetime.now(UTC))


async def half_an_hour_of_use(stage: Stage, nodes: dict[str, list[int]]) -> None:
    """What nodes used in each of the last minutes, in percent of 8 cores and of 32 GiB; the last minute is now."""
    usage = stage.runtime.usage
    usage.recent = RecentUsage()
    usage._monotonic = lambda: time.monotonic() + 3600  # which counts from the machine's start, a minute ago perhaps
    now = int(usage._monotonic() // 60)
    for ago in reversed(range(30)):
        usages = {}
        for name, percents in nodes.items():
            percent = percents[(29 - ago) * len(percents) // 30]
            usages[name] = Usage(80 * percent, 2**30 * 32 * (percent // 2 + 20) // 100)
        usage.recent.add(now - ago, usages)
    stage.measured = Measured(usages, {})
    usage.replace(stage.measured)
    stage.runtime.hub.publish(usage.name)


class _Prometheus:
    """A day of a pod or a node that works in waves."""

    def ask(self, query: str, first: int, last: int, step: int) -> dict[int, dict[str, float]]:
        return {
            minute: {
                "cpu_used": 1 + minute % 60 / 60,
                "cpu_requested": 1.0,
                "cpu_limit": 2.0,
                "memory_used": 3 * 2**30 + minute % 60 * 2**24,
                "memory_limit": 4 * 2**30,
                "read": minute % 7 * 2**20,
                "written": 2**19,
                "throttled": 12.5,
            }
            for minute in range(first, last + 1, step)
        }


async def used_pod(stage: Stage) -> None:
    """A pod whose container was killed ten minutes ago, and a Prometheus that knows it."""
    await scenes.working_day(stage)
    at = stamp(datetime.now(UTC) - timedelta(minutes=10))
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": at}}
    status = container_status(ready=True, restarts=1, lastState=killed)
    await scenes.put_pod(stage, "hungry", node="cpu-1", phase="Running", ready=True, statuses=[status])
    use_history._use_histories[:] = [use_history.UseHistory(stage.runtime, _Prometheus())]
