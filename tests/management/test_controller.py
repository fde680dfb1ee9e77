import asyncio
import threading

import pytest

from grid.database import threads as database
from grid.executions.context import LaunchTarget
from grid.management.commands import controller
from tests.database.test_database import endless

pytestmark = pytest.mark.django_db(transaction=True)


def database_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("database controller")]


async def test_controller_ending_does_not_wait_for_endless_query(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    async def ask(target: LaunchTarget, threads: controller.ControllerThreads, leading: set[str]) -> None:
        await threads.reconciles.run(endless, begun)

    monkeypatch.setattr(controller, "_serve_data_plane", ask)
    monkeypatch.setattr(database, "CLOSING_SECONDS", 0.1)
    serving = asyncio.create_task(controller.serve([LaunchTarget("local", "compute-grid", str, front_key=str)]))
    assert await asyncio.to_thread(begun.wait, 30)
    assert database_threads()
    serving.cancel()
    await asyncio.wait_for(serving, 30)
    assert not database_threads()
