"""What the browser tests of start-up times put on the stage: a month of starts, some cold and some that needed a new node."""

from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from dashboard.servicelevels.views import levels_in
from grid.models import Environment, Execution, HardwareTier, StartDay, StartUp
from grid.starts import startups
from tests.browser import administering, executing
from tests.browser.server import Stage

COUNT = 400


async def a_month_of_starts(stage: Stage) -> None:
    await administering.catalogues(stage)
    await executing.working_day(stage)
    await sync_to_async(_starts)()
    _forget_levels(stage)


async def nothing(stage: Stage) -> None:
    await sync_to_async(_clear)()
    _forget_levels(stage)


def _forget_levels(stage: Stage) -> None:
    """Whoever looked at the service levels more than a minute before left what they were then to the next one who asks."""
    levels_in(stage.runtime)._known.forget()


def _clear() -> None:
    StartUp.objects.all().delete()
    StartDay.objects.all().delete()


def _starts() -> None:
    _clear()
    executions = list(Execution.objects.order_by("pk"))
    tiers, environments = list(HardwareTier.objects.order_by("pk")), list(Environment.objects.order_by("pk"))
    for number in range(COUNT):
        # The slowest are those whose executions are still there, but for one.
        place = number // 23
        is_kept = number % 23 == 0 and 0 < place <= len(executions)
        startups.count_start(
            _start(
                number,
                executions[place - 1].pk if is_kept else f"gone{number}",
                tiers[number * number % len(tiers)],
                environments[number % len(environments)],
            )
        )


def _start(number: int, id: str, tier: HardwareTier, environment: Environment) -> StartUp:
    is_cold, has_new_node = number % 7 == 0, number % 23 == 0
    phases = {
        "queued": 0.4 + number * 37 % 11 * (6 if number % 9 == 0 else 0.2),
        "creating": 0.3 + number % 5 / 10,
        "node_wait": 130.0 + number if has_new_node else 0.0,
        "scheduling": 0.1,
        "volumes": 1.2 + number % 4,
        "pulling": 41.0 + number % 30 if is_cold or has_new_node else 0.0,
        "starting": 0.8,
        "answering": 3.5 + number % 6,
    }
    return StartUp(
        execution_id=id,
        at=datetime.now(UTC) - timedelta(hours=1.7 * number, minutes=1),
        ran=number % 40 != 39,
        kind="workspace",
        tier=tier,
        environment=environment,
        node_pool=tier.node_pool,
        image=environment.image,
        total=sum(phases.values()),
        node_started=has_new_node,
        node_decision=8.0 if has_new_node else None,
        node_creation=104.0 + number if has_new_node else None,
        node_joining=18.0 if has_new_node else None,
        image_cached=not (is_cold or has_new_node),
        image_bytes=1_830_000_000 if is_cold or has_new_node else 0,
        **phases,
    )
