"""What the usage pages' browser tests put on the stage: a team that has used the cluster for two months."""

from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from grid.models import Execution, HardwareTier, UsageInterval
from tests.browser import executing
from tests.browser.server import Stage


def _intervals() -> None:
    executions = {
        execution.owner.username: execution for execution in Execution.objects.select_related("owner", "project")
    }
    tiers = list(HardwareTier.objects.order_by("cost_per_hour"))
    now, people = datetime.now(UTC), len(executions)
    rows = []
    for number in range(120):
        execution = list(executions.values())[number % people]
        tier = tiers[number % 7 % len(tiers)]
        # Each person's last ends now, so that on the first of a month all have used something in it.
        began = now - timedelta(hours=(12 * people + 1) * (number // people))
        seconds = 3600 * (1 + number * 7 % 9)
        rows.append(
            UsageInterval(
                execution=execution, pod_uid=f"u{number}", pod_name="p", node_name="n", owner=execution.owner,
                project=execution.project, tier=tier, node_pool=tier.node_pool, millicores=1000 * (1 + number % 7), mebibytes=4096,
                gpus=tier.gpus, price_per_hour=tier.cost_per_hour, began_at=began - timedelta(seconds=seconds), ended_at=began,
                seconds=seconds,
            )
        )  # fmt: skip
    UsageInterval.objects.bulk_create(rows)


def _nothing() -> None:
    UsageInterval.objects.all().delete()


async def two_months(stage: Stage) -> None:
    await sync_to_async(_nothing)()
    await executing.working_day(stage)
    await sync_to_async(_intervals)()


async def nothing(stage: Stage) -> None:
    """No intervals, which would protect the executions of the next scene."""
    await sync_to_async(_nothing)()
