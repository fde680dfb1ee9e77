"""What the charts' browser tests put on the stage: a busy day with what was sampled in it."""

import time
from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from dashboard.pages import pool_history
from grid.metrics.usage import Measured, RecentUsage, Usage
from grid.models import PoolSample
from tests.browser import overviewing
from tests.browser.server import Stage
from tests.dashboard.charting import make_day


async def unsampled_day(stage: Stage) -> None:
    await overviewing.busy_day(stage)
    await sync_to_async(PoolSample.objects.all().delete)()
    pool_history._histories.clear()  # what is kept of a scene before


async def sampled_day(stage: Stage) -> None:
    await unsampled_day(stage)
    await sync_to_async(make_day)(datetime.now(UTC))


async def sampled_hour(stage: Stage) -> None:
    """Until a quarter of an hour ago: nothing has been sampled since."""
    await unsampled_day(stage)
    await sync_to_async(make_day)(datetime.now(UTC) - timedelta(minutes=15), minutes=45)


async def next_sample(stage: Stage) -> None:
    """The minute that comes, in which all pools are empty."""
    await sync_to_async(_empty)()


def _empty() -> None:
    newest = list(PoolSample.objects.filter(minute=PoolSample.objects.latest("minute").minute))
    for one in newest:
        one.pk, one.minute, one.nodes, one.nodes_ready = None, one.minute + 1, 0, 0
    PoolSample.objects.bulk_create(newest)


async def half_an_hour_of_use(stage: Stage, nodes: dict[str, list[int]]) -> None:
    """What nodes used in each of the last minutes, in percent of 8 cores and of 32 GiB; the last minute is now."""
    usage = stage.runtime.usage
    usage.recent = RecentUsage()
    usage._monotonic = lambda: time.monotonic() + 3600  # which counts from the machine's start, a minute ago perhaps
    now = int(usage._monotonic() // 60)
    for ago in reversed(range(30)):
        found = {}
        for name, percents in nodes.items():
            percent = percents[(29 - ago) * len(percents) // 30]
            found[name] = Usage(80 * percent, 2**30 * 32 * (percent // 2 + 20) // 100)
        usage.recent.add(now - ago, found)
    stage.measured = Measured(found, {})
    usage.replace(stage.measured)
    stage.runtime.hub.publish(usage.name)
