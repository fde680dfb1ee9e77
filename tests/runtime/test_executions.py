"""The snapshot of active executions: what is in it, how it follows the change feed, and what that costs."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings, strategies as st

from grid.database.changefeed import EVERYTHING, Change
from grid.kube.hub import Hub
from grid.models import Environment, Execution, HardwareTier, Project, State
from grid.runtime.executionrows import ExecutionRow, read_rows, read_versions
from grid.runtime.executions import PUT_AT_ONCE, TOLD_PERIOD, TOPIC, ActiveExecutions
from tests.conftest import People
from tests.executions.executing import ROW
from tests.support.changefeed import ScriptedFeed
from tests.support.frozen import on_tier
from tests.support.virtual import cancelled, passes, virtual_time

NOW = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)


def launch(people: People, **fields: object) -> Execution:
    project = Project.objects.filter(id="fraud").first()
    if project is None:
        project = Project.objects.start(id="fraud", name="Fraud", owner=people.owner)
        project.members.add(people.teammate, through_defaults={"role": "contributor"})
    small = {"name": "Small", "node_pool": "default", "cores": "1", "memory": "4Gi"}
    tier, _ = HardwareTier.objects.get_or_create(id="small", defaults=small)
    environment = Environment.objects.first() or Environment.objects.create(id="py", name="Python", image="python:3.11")
    values = {"kind": "workspace", "requested_at": NOW, **on_tier(tier), **fields}
    return Execution.objects.create(owner=people.owner, project=project, environment=environment, **values)


def test_active_and_lately_ended_executions_are_shown(people: People) -> None:
    running = launch(people, state=State.RUNNING)
    ended = launch(people, state=State.FAILED, ended_at=NOW - timedelta(minutes=59), settled_at=NOW)
    long_ago = NOW - timedelta(minutes=61)
    launch(people, state=State.FAILED, ended_at=long_ago, settled_at=long_ago)
    unsettled = launch(people, state=State.ERROR, ended_at=long_ago)
    assert {row.id for row in read_rows(NOW)} == {running.pk, ended.pk, unsettled.pk}


def test_row_has_list_columns_and_its_viewers(people: People) -> None:
    execution = launch(people, state=State.RUNNING, title="Model", slots=3)
    (row,) = read_rows(NOW)
    assert (row.title, row.owner_username, row.project_name, row.tier_name) == ("Model", "alice", "Fraud", "Small")
    assert row.project_roles == {people.owner.pk: "owner", people.teammate.pk: "contributor"}
    assert row.object_name == execution.object_name


def test_reading_costs_few_queries_however_many_there_are(people: People) -> None:
    for _ in range(20):
        launch(people)
    with CaptureQueriesContext(connection) as rows:
        read_rows(NOW)
    with CaptureQueriesContext(connection) as mark:
        read_versions(NOW)
    assert (len(rows), len(mark)) == (3, 3)
    read = " ".join(query["sql"] for query in rows)
    assert not any(large in read for large in ("executionlog", '"spec"')), "no list shows what is large"
    assert '"node_pool"' not in read, "of a tier only its name is shown"


def test_the_mark_differs_after_every_kind_of_write(people: People) -> None:
    first = launch(people)
    marks = [read_versions(NOW)]
    first.save(update_fields=["updated_at"])
    marks.append(read_versions(NOW))
    Execution.objects.filter(pk=first.pk).update(revision=7)
    marks.append(read_versions(NOW))
    second = launch(people)
    marks.append(read_versions(NOW))
    second.delete()
    marks.append(read_versions(NOW))
    members = first.project.memberships
    for write in (
        lambda: members.create(user=people.stranger, role="viewer"),
        lambda: members.filter(user=people.stranger).update(role="contributor"),
        lambda: members.filter(user=people.stranger).delete(),
        lambda: first.project.assign(owner=people.teammate, contributors=[people.owner], viewers=[]),
    ):
        write()
        marks.append(read_versions(NOW))
    assert all(before != after for before, after in pairwise(marks))
    assert read_versions(NOW) == marks[-1]


@asynccontextmanager
async def running(executions: ActiveExecutions) -> AsyncIterator[None]:
    task = asyncio.create_task(executions.run())
    try:
        async with asyncio.timeout(20):
            yield
    finally:
        await cancelled(task)


@pytest.mark.django_db(transaction=True)
async def test_a_hint_is_followed_at_once_and_published(people: People) -> None:
    hub = Hub()
    executions = ActiveExecutions(hub, clock=lambda: NOW)
    async with running(executions):
        with hub.subscribe({"executions"}) as subscription:
            execution = await sync_to_async(launch)(people)
            executions.hint()
            await subscription.changed()
            assert [row.state for row in executions.values()] == [State.QUEUED]
            await sync_to_async(Execution.objects.filter(pk=execution.pk).update)(state=State.RUNNING, revision=1)
            await asyncio.to_thread(executions.hint)
            await subscription.changed()
            assert [row.state for row in executions.values()] == [State.RUNNING]


class Database:
    """Executions by id, as rows, and every read of it."""

    def __init__(self, *rows: ExecutionRow) -> None:
        self.rows = {row.id: row for row in rows}
        self.reads: list[object] = []
        self._writes = 0

    def write(self, id: str, **fields: Any) -> None:
        self._writes += 1
        self.rows[id] = replace(self.rows.get(id, ROW), id=id, version=(self._writes, NOW), **fields)

    async def ask(self, read: Any, now: datetime) -> Any:
        await asyncio.sleep(0.001)
        if read is read_versions:
            self.reads.append("versions")
            roles = sorted((row.project_id, *row.project_roles) for row in self.rows.values())
            return {id: row.version for id, row in self.rows.items() if row.version}, roles
        wanted = getattr(read, "keywords", {}).get("ids")
        self.reads.append("all" if wanted is None else sorted(wanted))
        return [row for id, row in self.rows.items() if wanted is None or id in wanted]


@asynccontextmanager
async def following(database: Database, feed: ScriptedFeed | None) -> AsyncIterator[ActiveExecutions]:
    executions = ActiveExecutions(Hub(), clock=lambda: NOW, feed=feed, ask=database.ask, rng=random.Random(1))
    task = asyncio.create_task(executions.run())
    await passes(0.5)
    try:
        yield executions
    finally:
        await cancelled(task)


def row_of(executions: ActiveExecutions, id: str) -> ExecutionRow:
    row = executions.get(id)
    assert row is not None
    return row


@virtual_time
async def test_changes_from_feed_are_read_alone_and_at_once() -> None:
    database, feed = Database(), ScriptedFeed()
    for number in range(100):
        database.write(f"e{number}")
    async with following(database, feed) as executions:
        database.reads.clear()
        database.write("e7", state="failed")
        database.write("new", requested_at=NOW + timedelta(hours=1))
        del database.rows["e8"]
        feed.told.put_nowait({Change("e7"), Change("new"), Change("e8")})
        await passes(0.1)
        assert database.reads == [["e7", "e8", "new"]]
        assert row_of(executions, "e7").state == "failed"
        assert executions.get("e8") is None
        assert len(executions.values()) == 100


async def test_refresh_cancelled_between_slices_published_the_first() -> None:
    database, hub = Database(), Hub()
    for number in range(PUT_AT_ONCE + 1):
        database.write(f"e{number}")
    executions = ActiveExecutions(hub, clock=lambda: NOW, ask=database.ask)
    with hub.subscribe({TOPIC}) as subscription:
        reading = asyncio.create_task(executions.catch_up())
        while not executions.values():  # noqa: ASYNC110  between two slices there is no event
            await asyncio.sleep(0)
        await cancelled(reading)
        assert await subscription.changed() == {TOPIC}
    assert len(executions.values()) == PUT_AT_ONCE
    await executions.catch_up()
    assert len(executions.values()) == PUT_AT_ONCE + 1


@virtual_time
async def test_new_member_makes_project_executions_reread() -> None:
    database, feed = Database(), ScriptedFeed()
    database.write("ours")
    database.write("theirs", project_id="theirs")
    async with following(database, feed) as executions:
        database.reads.clear()
        database.write("ours", project_roles={7: "viewer"})
        feed.told.put_nowait({Change(project=ROW.project_id)})
        await passes(0.1)
        assert database.reads == [["ours"]]
        assert 7 in row_of(executions, "ours").project_member_ids


@virtual_time
async def test_a_name_that_changed_is_read_with_all_rows() -> None:
    database, feed = Database(), ScriptedFeed()
    database.write("one")
    async with following(database, feed) as executions:
        database.rows["one"] = replace(database.rows["one"], tier_name="Tiny")
        feed.told.put_nowait({EVERYTHING})
        await passes(0.1)
        assert database.reads[-1] == "all"
        assert row_of(executions, "one").tier_name == "Tiny"


@virtual_time
async def test_working_feed_compares_versions_rarely_and_reads_no_row() -> None:
    database, feed = Database(), ScriptedFeed()
    database.write("one")
    async with following(database, feed) as executions:
        database.reads.clear()
        with executions._hub.subscribe({"executions"}):
            await passes(600)
        assert 9 <= len(database.reads) <= 11
        assert set(map(str, database.reads)) == {"versions"}
        database.write("one", state="failed")  # which the feed does not tell
        await passes(TOLD_PERIOD + 1)
        assert row_of(executions, "one").state == "failed"


@virtual_time
async def test_lost_feed_falls_back_to_polling_each_second(caplog: pytest.LogCaptureFixture) -> None:
    database, feed = Database(), ScriptedFeed()
    async with following(database, feed) as executions:
        with executions._hub.subscribe({"executions"}):
            for _ in range(6):  # it is lost as soon as it has begun, again and again
                feed.told.put_nowait("server closed the connection")
            database.write("one")
            await passes(1.5)
            assert executions.get("one") is not None
            await passes(60)
            database.write("two")
            feed.told.put_nowait({Change("two")})
            await passes(0.1)
            assert executions.get("two") is not None
    assert [record.levelname for record in caplog.records].count("WARNING") == 1


@virtual_time
async def test_unresponsive_database_is_asked_again_after_change() -> None:
    database, feed = Database(), ScriptedFeed()
    is_away = [True]

    class Away(Database):
        async def ask(self, read: Any, now: datetime) -> Any:
            if is_away and isinstance(read, partial):
                raise OperationalError("the database is locked")
            return await database.ask(read, now)

    async with following(Away(), feed) as executions:
        database.write("one")
        feed.told.put_nowait({Change("one")})
        await passes(0.5)
        assert executions.get("one") is None
        is_away.clear()
        await passes(3)
        assert executions.get("one") is not None


@virtual_time
async def test_name_changed_while_feed_was_lost_is_read_later() -> None:
    database, feed = Database(), ScriptedFeed()
    database.write("one")
    async with following(database, feed) as executions:
        feed.told.put_nowait("server closed the connection")
        await asyncio.sleep(0)
        database.rows["one"] = replace(database.rows["one"], tier_name="Tiny")
        await passes(2)
        assert row_of(executions, "one").tier_name == "Tiny"


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
@virtual_time
async def test_however_looks_overlap_the_last_state_is_shown(seed: int) -> None:
    """Each read takes a time of its own, so the one that began first may be done last."""
    rng, database = random.Random(seed), Database()

    async def ask(read: Any, now: datetime) -> Any:
        await asyncio.sleep(rng.uniform(0, 0.3))
        rows = await database.ask(read, now)
        await asyncio.sleep(rng.uniform(0, 0.3))
        return rows

    executions = ActiveExecutions(Hub(), clock=lambda: NOW, ask=ask)
    async with asyncio.TaskGroup() as looks:
        for _ in range(30):
            id = f"e{rng.randrange(4)}"
            if rng.random() < 0.2:
                database.rows.pop(id, None)
            else:
                database.write(id, title=str(rng.random()))
            looks.create_task(executions.read_changes([Change(id)]))
            if rng.random() < 0.2:
                looks.create_task(executions.refresh())
            await asyncio.sleep(rng.uniform(0, 0.1))
    assert {row.id: row.title for row in executions.values()} == {id: row.title for id, row in database.rows.items()}
