"""The embedded cluster's population on the stage."""

from django.conf import settings

from tests.browser.server import Stage
from tests.support.cluster import POPULATION


async def begin(stage: Stage) -> None:
    settings.DEMO, stage.cluster.sandbox = True, POPULATION


async def end(stage: Stage) -> None:
    settings.DEMO, stage.cluster.sandbox = False, None
