import asyncio
import threading

import pytest

from grid import database
from grid.database import DatabaseThreads
from grid.launch.context import LaunchTarget
from grid.management.commands import controller
from tests.test_database import endless

pytestmark = pytest.mark.django_db(transaction=True)


def database_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("database controller")]


async def test_a_controller_that_has_to_end_waits_for_no_endless_query(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    async def ask(target: LaunchTarget, threads: DatabaseThreads) -> None:
        await threads.run(endless, begun)

    monkeypatch.setattr(controller, "_serve_data_plane", ask)
    monkeypatch.setattr(database, "CLOSING_SECONDS", 0.1)
    serving = asyncio.create_task(controller.serve([LaunchTarget("local", "compute-grid", str)]))
    assert await asyncio.to_thread(begun.wait, 30)
    assert len(database_threads()) == 1
    serving.cancel()
    await asyncio.wait_for(serving, 30)
    assert not database_threads()
