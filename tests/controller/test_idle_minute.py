"""What a controller asks of the database in a minute in which nothing happens: little, of ten executions too."""

import asyncio
from collections import Counter
from typing import Any

from django.db import connection

from grid.kube.resources import ENDPOINTS
from tests.controller.world import World, in_world
from tests.support.changefeed import ScriptedFeed
from tests.support.shop import Shop
from tests.support.virtual import cancelled, loop_time, passes

MINUTES = 5
MOST = 130  # statements a minute


def test_idle_minute_takes_few_statements(shop: Shop) -> None:
    asked = Counter[str]()

    def counting(execute: Any, sql: str, *rest: Any) -> Any:
        asked[sql] += 1
        return execute(sql, *rest)

    @in_world
    async def idle() -> None:
        world = World()
        api_server = {"name": "kubernetes", "namespace": "default"}
        world.cluster.put(ENDPOINTS, {"metadata": api_server, "subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]})
        running = [shop.launch(after=second) for second in range(10)]
        controller = world.controller(monotonic=loop_time)
        await world.rounds(controller, 6)
        controller.listen_to(ScriptedFeed())
        task = asyncio.create_task(controller.run())
        await passes(600)
        with connection.execute_wrapper(counting):
            await passes(60 * MINUTES)
        await cancelled(task)
        assert len(world.pods()) == len(running) == 10

    idle()
    assert asked.total() / MINUTES < MOST, "\n".join(f"{c / MINUTES:.1f} {s[:170]}" for s, c in asked.most_common(45))
