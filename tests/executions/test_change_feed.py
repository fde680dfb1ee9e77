"""The controller is woken by what the database tells: sooner than by asking, and without reading what was not written."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError

from grid.controller.controller import Controller
from grid.database.changefeed import Change
from grid.executions import ledger
from grid.models import Membership
from tests.controller.world import World, fresh, in_world
from tests.support.changefeed import ScriptedFeed
from tests.support.shop import Shop
from tests.support.virtual import cancelled, loop_time, passes


@asynccontextmanager
async def polling(world: World, feed: ScriptedFeed | None) -> AsyncIterator[Controller]:
    """It listens and polls, and nothing else of it runs."""
    controller = world.controller(monotonic=loop_time)
    tasks = [asyncio.create_task(controller._poll_for_ever())]
    if feed is not None:
        tasks.append(asyncio.create_task(controller.listen_to(feed).run()))
    await passes(0.5)
    try:
        yield controller
    finally:
        for task in tasks:
            await cancelled(task)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Which rows' versions were read: the ids, or None for all."""
    asked: list[object] = []
    read = ledger.row_versions

    def noted(data_plane: str, ids: Any = None) -> dict[str, int]:
        asked.append(None if ids is None else sorted(ids))
        return read(data_plane, ids)

    monkeypatch.setattr(ledger, "row_versions", noted)
    return asked


@in_world
async def test_launch_has_a_slot_as_soon_as_told(shop: Shop, reads: list[object]) -> None:
    world, feed = World(), ScriptedFeed()
    async with polling(world, feed):
        reads.clear()
        execution = shop.launch()
        feed.told.put_nowait({Change(execution.pk)})
        await passes(0.1)
        assert fresh(execution).state == "deploying"
        assert reads == [[execution.pk]], "and no other row was read for it"


@in_world
async def test_at_rest_all_are_read_once_a_minute(shop: Shop, reads: list[object]) -> None:
    async with polling(World(), ScriptedFeed()):
        reads.clear()
        await passes(600)
        assert reads == [None] * len(reads)
        assert 9 <= len(reads) <= 11


@in_world
async def test_overlong_wait_is_noticed_within_seconds_without_changes(shop: Shop) -> None:
    world, feed = World(), ScriptedFeed()
    async with polling(world, feed) as controller:
        execution = shop.launch()
        feed.told.put_nowait({Change(execution.pk)})
        await passes(0.1)
        assert await controller._queue.get() == execution.pk
        controller._queue.done(execution.pk)
        world.passes(timedelta(days=10).total_seconds())
        await passes(6)
        assert not controller.idle


@in_world
async def test_leaving_a_project_is_noticed_as_soon_as_told(shop: Shop) -> None:
    world, feed = World(), ScriptedFeed()
    theirs = shop.launch(owner=shop.people.teammate)
    async with polling(world, feed):
        Membership.objects.filter(user=shop.people.teammate).delete()
        feed.told.put_nowait({Change(project=shop.project.pk)})
        await passes(0.1)
        assert fresh(theirs).access_lost_at is not None


@in_world
async def test_change_told_during_a_database_outage_is_kept(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world, feed = World(), ScriptedFeed()
    read = ledger.row_versions
    async with polling(world, feed):
        execution = shop.launch()

        def away(data_plane: str, ids: Any = None) -> dict[str, int]:
            raise OperationalError("server closed the connection")

        monkeypatch.setattr(ledger, "row_versions", away)
        feed.told.put_nowait({Change(execution.pk)})
        await passes(0.5)
        assert fresh(execution).state == "queued"
        monkeypatch.setattr(ledger, "row_versions", read)
        await passes(3)
        assert fresh(execution).state == "deploying"


@in_world
async def test_controller_polls_each_second_after_losing_the_feed(
    shop: Shop, reads: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    feed = ScriptedFeed()
    with caplog.at_level(logging.WARNING):
        async with polling(World(), feed):
            for _ in range(50):
                feed.told.put_nowait("the server is going away")
            await passes(10)
            reads.clear()
            await passes(10)
            assert 9 <= len(reads) <= 14
    assert caplog.text.count("changes are not told") == 1
