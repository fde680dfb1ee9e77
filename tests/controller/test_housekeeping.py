"""What opens nothing any more is cleared away by itself; what opens something stays."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from grid.configuration import SESSION_IDLE, value_of
from grid.controller.housekeeping import (
    BATCH,
    CHORES,
    FIRST_SECONDS,
    PERIOD_SECONDS,
    RETRY_SECONDS,
    periodic,
    purge_grants,
    run_chores,
)
from grid.models import Execution, Session, State, User, WorkspaceGrant
from tests.controller.world import in_world
from tests.support.periodic import repeat
from tests.support.shop import NOW, Shop
from tests.support.virtual import cancelled, passes, virtual_time

DAY = timedelta(days=1)


def session(key: str, user: User, *, seen_at: datetime = NOW) -> Session:
    end = NOW + timedelta(days=1)
    return Session.objects.create(session_key=key, user=user, created_at=seen_at, seen_at=seen_at, expire_date=end)


def grant(execution: Execution, key: str = "here", *, secret: str | None = "", at: datetime = NOW) -> WorkspaceGrant:
    number = WorkspaceGrant.objects.count()
    return WorkspaceGrant.objects.create(
        execution=execution,
        user=execution.owner,
        session_key=key,
        ticket_hash=f"ticket-{number}",
        secret_hash=f"secret-{number}" if secret is not None else None,
        created_at=at,
    )


@pytest.fixture
def workspace(shop: Shop) -> Execution:
    session("here", shop.people.owner)
    return shop.launch()


@pytest.mark.parametrize(
    ("key", "secret", "age", "ended", "purged"),
    [
        ("here", "", 6 * DAY, False, 0),
        ("here", None, timedelta(0), False, 0),
        ("here", None, timedelta(seconds=61), False, 1),
        ("logged-out", "", timedelta(0), False, 1),
        ("here", "", 8 * DAY, False, 1),
        ("logged-out", "", 6 * DAY, True, 0),
    ],
    ids=["used", "open ticket", "ticket unused in time", "session gone", "too old", "end still to be told"],
)
def test_grant_goes_when_it_opens_nothing_any_more(
    workspace: Execution, key: str, secret: str | None, age: timedelta, ended: bool, purged: int
) -> None:
    if ended:
        Execution.objects.filter(pk=workspace.pk).update(state=State.STOPPED, ended_at=NOW)
    grant(workspace, key, secret=secret, at=NOW - age)
    assert purge_grants(NOW, BATCH) == purged
    assert WorkspaceGrant.objects.count() == 1 - purged


async def at_once(work: Any, /, *args: Any, **kwargs: Any) -> Any:
    return work(*args, **kwargs)


@in_world
async def test_ended_sessions_are_cleared_away_with_their_grants(workspace: Execution, shop: Shop) -> None:
    session("idle", shop.people.teammate, seen_at=NOW - timedelta(seconds=value_of(SESSION_IDLE)))
    grant(workspace, "idle")
    kept = grant(workspace)
    await run_chores(at_once, lambda: NOW, CHORES)
    assert Session.objects.get().pk == "here"
    assert WorkspaceGrant.objects.get() == kept


@virtual_time
async def test_all_is_cleared_in_batches_each_hour() -> None:
    left, batches = [2 * BATCH + 1], []

    def chore(now: datetime, at_most: int) -> int:
        cleared = min(left[0], at_most)
        left[0] -= cleared
        batches.append(cleared)
        return cleared

    task = asyncio.create_task(repeat(periodic(at_once, lambda: NOW, chores={"things": chore})))
    await passes(FIRST_SECONDS + 1)
    assert batches == [BATCH, BATCH, 1, 0]
    left[0] = 1
    await passes(PERIOD_SECONDS)
    assert batches[4:] == [1, 0]
    await cancelled(task)


@virtual_time
async def test_failed_chore_is_logged_and_retried_alone(caplog: pytest.LogCaptureFixture) -> None:
    tried: list[str] = []

    def broken(now: datetime, at_most: int) -> int:
        tried.append("broken")
        raise OSError("the database is gone")

    def fine(now: datetime, at_most: int) -> int:
        tried.append("fine")
        return 0

    task = asyncio.create_task(repeat(periodic(at_once, lambda: NOW, chores={"first": broken, "second": fine})))
    await passes(FIRST_SECONDS + 1)
    assert tried == ["broken", "fine"]
    assert "not cleared away, again in 300 s: first" in caplog.text
    await passes(RETRY_SECONDS)
    assert tried == ["broken", "fine"] * 2
    await cancelled(task)
