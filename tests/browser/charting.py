"""What the charts' browser tests put on the stage: a busy day with what was sampled in it."""

from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from dashboard.pages import pool_history
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
