"""What the browser test of the rush planner puts on the stage: tiers, a pool of two nodes that may grow, and some measured starts."""

from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from grid.configuration import WARM_PLACES
from grid.models import Environment, HardwareTier, RushPlan, StartUp, User
from tests.browser import administering
from tests.browser.server import Stage
from tests.support.settings import change


async def before_a_course(stage: Stage) -> None:
    await sync_to_async(_clear)()
    await administering.catalogues(stage)
    await sync_to_async(_fill)()


async def nothing(stage: Stage) -> None:
    await sync_to_async(_clear)()


def _clear() -> None:
    RushPlan.objects.all().delete()
    StartUp.objects.all().delete()


def _fill() -> None:
    change(WARM_PLACES.key, "50", actor=User.objects.get(username="ada-admin"))
    tier, lab = HardwareTier.objects.get(pk="medium"), Environment.objects.get(pk="jupyterlab")
    StartUp.objects.bulk_create(
        StartUp(
            execution_id=f"rush{number}",
            at=datetime.now(UTC) - timedelta(days=number),
            ran=True,
            kind="workspace",
            tier=tier,
            environment=lab,
            node_pool=tier.node_pool,
            image=lab.image,
            total=400.0,
            node_started=True,
            node_wait=200.0 + number,
            image_cached=False,
            pulling=50.0,
        )
        for number in range(8)
    )
