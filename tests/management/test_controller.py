import asyncio
import threading

import aiohttp
import pytest
from pytest_django import Settings

from grid.database import threads as database
from grid.database.seam import Databases
from grid.executions.context import LaunchTarget
from grid.management.commands import controller
from tests.database.test_database import endless
from tests.support.ports import free_ports
from tests.support.prometheus import complaints

pytestmark = pytest.mark.django_db(transaction=True)


def database_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("database controller")]


async def test_controller_ending_does_not_wait_for_endless_query(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    async def ask(target: LaunchTarget, databases: Databases, leading: set[str]) -> None:
        await databases.reconciles(endless, begun)

    monkeypatch.setattr(controller, "_serve_data_plane", ask)
    monkeypatch.setattr(database, "CLOSING_SECONDS", 0.1)
    serving = asyncio.create_task(controller.serve([LaunchTarget("local", "compute-grid", str, front_key=str)]))
    assert await asyncio.to_thread(begun.wait, 30)
    assert database_threads()
    serving.cancel()
    await asyncio.wait_for(serving, 30)
    assert not database_threads()


async def test_controller_serves_metrics_and_works_without_the_port(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.CONTROLLER_METRICS_PORT = free_ports()
    leads = asyncio.Event()

    async def lead(target: LaunchTarget, databases: Databases, leading: set[str]) -> None:
        leading.add(target.data_plane)
        leads.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(controller, "_serve_data_plane", lead)
    serving = []
    for _ in range(2):  # the second finds the port taken
        leads.clear()
        serving.append(
            asyncio.create_task(controller.serve([LaunchTarget("local", "compute-grid", str, front_key=str)]))
        )
        await asyncio.wait_for(leads.wait(), 30)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{settings.CONTROLLER_METRICS_PORT}/metrics") as answer,
        ):
            text = await answer.text()
    assert {"compute_grid_controller_leads 1.0", "compute_grid_queue_oldest_seconds 0.0"} <= set(text.splitlines())
    assert not any(task.done() for task in serving)
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving)
    assert complaints(text) == ""
