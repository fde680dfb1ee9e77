"""The controller as the command runs it: database in its own thread and connection, real time."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from grid.controller.controller import Controller
from grid.executions.context import LaunchTarget
from grid.models import Execution, State
from grid.models.dataplane import LOCAL
from tests.controller.world import World
from tests.support.builders import NAMESPACE
from tests.support.shop import Shop
from tests.support.waiting import eventually


@pytest.mark.django_db(transaction=True)
def test_controller_admits_and_creates_with_database_in_another_thread(transactional_db: None, shop: Shop) -> None:
    execution = shop.launch()
    world = World()

    def state() -> str:
        return Execution.objects.values_list("state", "reason").get(pk=execution.pk)[1]

    async def until_created() -> None:
        controller = Controller(world.cluster, LaunchTarget(LOCAL, NAMESPACE, lambda id: "token", front_key=str))
        task = asyncio.create_task(controller.run())
        try:
            await eventually(sync_to_async(state), holds=lambda state: state == "created")
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(until_created())
    execution.refresh_from_db()
    assert execution.state == State.DEPLOYING
    assert len(world.pods()) == 1
