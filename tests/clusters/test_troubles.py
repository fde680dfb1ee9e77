"""A controller whose database is full: it goes on trying, says so once, and loses nothing."""

import logging
import sqlite3

import pytest

from grid.database.trouble import TroubleLog
from grid.models import Execution, State
from tests.controller.world import World, in_world
from tests.support.database import full_database
from tests.support.shop import Shop
from tests.support.virtual import passes


@pytest.mark.django_db(transaction=True)
@in_world
async def test_full_disk_is_logged_once_and_all_start_afterwards(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    for number in range(20):
        shop.launch(after=number)
    controller = world.controller()
    await controller.poll()  # admits them
    assert {execution.state for execution in Execution.objects.all()} == {State.DEPLOYING}
    with full_database():
        for _ in range(6):
            while not controller.idle:
                await controller.work()
            world.behave()
            world.refresh(controller)
            await passes(60)  # longer than any pause before another try
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert lines[0].getMessage().startswith("The disk of the database is full: nothing was saved. An operator has to")
    assert Execution.objects.exclude(state=State.RUNNING).exists()
    for _ in range(4):
        await passes(60)
        await world.step(controller)
        world.behave()
    assert {execution.state for execution in Execution.objects.all()} == {State.RUNNING}
    assert world.most_pods == 20


def test_trouble_is_logged_once_a_minute_and_when_over(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    troubles = TroubleLog(lambda: now)
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorname = "SQLITE_FULL"
    caplog.set_level(logging.INFO)
    for now in range(0, 100, 10):  # noqa: B007  read by the clock
        assert troubles.handles(full)
        troubles.tell_if_over()
    assert len(caplog.records) == 2
    assert not troubles.handles(ValueError("ours"))
    now = 150.0
    troubles.tell_if_over()
    troubles.tell_if_over()
    assert [record.getMessage() for record in caplog.records[2:]] == ["the database has been well again for a minute"]
