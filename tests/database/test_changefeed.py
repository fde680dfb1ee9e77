"""What a database tells of its writes: SQLite's file and a real PostgreSQL, by the same promises."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.utils import timezone

from grid.database import changefeed, triggers
from grid.database.changefeed import EVERYTHING, Change, ChangeFeed, FeedLost, PostgresFeed, SqliteFeed, feed_of
from grid.database.triggers import TABLE
from grid.models import Execution, Job, JobRun, RunSettings, Schedule
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.support.database import ON_POSTGRESQL, ON_SQLITE

pytestmark = pytest.mark.django_db(transaction=True)
THE_LISTENERS_END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%tgname%' AND pid <> pg_backend_pid()"
)


class Told:
    """What a feed has told, one after the other."""

    def __init__(self, changes: AsyncIterator[Collection[Change]]) -> None:
        self._changes = changes

    async def next(self) -> set[Change]:
        async with asyncio.timeout(20):
            return set(await anext(self._changes))


class Store:
    """A database that other processes write to."""

    def __init__(self, feed: ChangeFeed, execute: Callable[[str], None]) -> None:
        self.feed = feed
        self.execute = execute

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Told]:
        async with aclosing(self.feed.changes()) as changes:
            listener = Told(changes)
            assert await listener.next() == {EVERYTHING}, "from now on nothing is missed"
            yield listener

    async def write(self, *statements: str) -> None:
        for statement in statements:
            await sync_to_async(self.execute)(statement)

    async def write_at_once(self, *statements: str) -> None:
        """Write them in one transaction, on SQLite only."""
        assert isinstance(self.feed, SqliteFeed)
        with sqlite3.connect(self.feed._path) as writer:
            for statement in statements:
                writer.execute(statement)
        writer.close()


@pytest.fixture
def execution(people: People) -> Execution:
    return make_execution(people.owner, make_project(people.owner))


@pytest.fixture
def store(execution: Execution, tmp_path: Path) -> Store:
    """The tests' own on PostgreSQL; on SQLite, where it is in memory, a copy in a file."""
    if connection.vendor == "postgresql":
        feed = feed_of()
        assert isinstance(feed, PostgresFeed)

        def execute(statement: str) -> None:
            with connection.cursor() as cursor:
                cursor.execute(statement)

        return Store(feed, execute)
    path = tmp_path / "grid.sqlite3"
    with sqlite3.connect(path) as copy:
        connection.connection.backup(copy)
        copy.execute("PRAGMA journal_mode=WAL")
    copy.close()

    def execute_there(statement: str) -> None:
        with sqlite3.connect(path) as writer:
            writer.execute(statement)
        writer.close()

    return Store(SqliteFeed(str(path)), execute_there)


async def test_execution_write_is_published_with_its_id(store: Store, execution: Execution) -> None:
    columns = [str(field.column) for field in Execution._meta.concrete_fields if field.column not in (None, "id")]
    values = ", ".join(columns)
    async with store.listening() as feed:
        await store.write(f"INSERT INTO grid_execution (id, {values}) SELECT 'copy', {values} FROM grid_execution")
        assert await feed.next() == {Change("copy")}
        await store.write(f"UPDATE grid_execution SET title = 'x' WHERE id = '{execution.pk}'")
        assert await feed.next() == {Change(execution.pk)}
        await store.write("DELETE FROM grid_execution WHERE id = 'copy'")
        assert await feed.next() == {Change("copy")}


async def test_rolled_back_write_is_not_published(store: Store, execution: Execution) -> None:
    async with store.listening() as feed:
        with pytest.raises((sqlite3.Error, ZeroDivisionError)):
            await sync_to_async(rolled_back)(store)
        await store.write(f"UPDATE grid_execution SET title = 'x' WHERE id = '{execution.pk}'")
        assert await feed.next() == {Change(execution.pk)}


async def test_a_persons_new_notification_is_told(store: Store, people: People) -> None:
    columns = "user_id, event, title, sentence, path, at"
    values = f"{people.owner.pk}, 'failed', 'Train', 'It failed.', '/help/', '2026-03-04 09:00:00+00:00'"
    async with store.listening() as feed:
        for statement in (
            f"INSERT INTO grid_notification ({columns}) VALUES ({values})",
            "UPDATE grid_notification SET read_at = at",
            "DELETE FROM grid_notification",
        ):
            await store.write(statement)
            assert await feed.next() == {Change(person=str(people.owner.pk))}


@pytest.fixture
def job(execution: Execution, people: People) -> Job:
    made = Job.objects.create(
        id="j1", owner=people.owner, project=execution.project, environment=execution.environment, tier=execution.tier
    )
    settings = RunSettings.objects.create(job=made, record={})
    JobRun.objects.create(job=made, number=1, settings=settings, requested_by="alice")
    Schedule.objects.create(job=made, cron="0 6 * * *", time_zone="UTC", next_at=timezone.now())
    return made


async def test_written_job_run_or_schedule_is_published_with_job(job: Job, store: Store, people: People) -> None:
    async with store.listening() as feed:
        await store.write("UPDATE grid_job SET title = 'Train'")
        assert await feed.next() == {Change(jobs_of=str(people.owner.pk))}
        for statement in (
            "UPDATE grid_jobrun SET message = 'It starts in a moment.'",
            "DELETE FROM grid_jobrun",
            "UPDATE grid_schedule SET next_at = '2026-03-04 09:00:00+00:00'",
        ):
            await store.write(statement)
            assert await feed.next() == {Change(job="j1")}


def rolled_back(store: Store) -> None:
    if connection.vendor == "postgresql":
        with transaction.atomic():
            store.execute("UPDATE grid_project SET name = 'x'")
            raise ZeroDivisionError
    store.execute("UPDATE grid_project SET name = NULL")


async def test_new_member_or_role_is_published(store: Store, execution: Execution, people: People) -> None:
    insert = f"INSERT INTO grid_membership (project_id, user_id, role) VALUES ('churn', {people.stranger.pk}, 'viewer')"
    async with store.listening() as feed:
        for statement in (
            insert,
            f"UPDATE grid_membership SET role = 'contributor' WHERE user_id = {people.stranger.pk}",
            f"DELETE FROM grid_membership WHERE user_id = {people.stranger.pk}",
        ):
            await store.write(statement)
            assert await feed.next() == {Change(project="churn")}


@pytest.mark.parametrize(
    "written",
    [
        "grid_project SET name = 'x'",
        "grid_user SET username = 'x' WHERE username = 'alice'",
        "grid_hardwaretier SET name = 'x'",
        "grid_environment SET name = 'x'",
        "grid_hardwaretier SET maximum_simultaneous = 7",
        "grid_user SET is_active = NOT is_active WHERE username = 'alice'",
    ],
)
async def test_a_name_that_lists_show_is_told_of(store: Store, written: str) -> None:
    async with store.listening() as feed:
        await store.write(f"UPDATE {written}")
        assert await feed.next() == {EVERYTHING}


@pytest.mark.parametrize(
    "written",
    [
        "grid_user SET last_login = '2026-01-01 00:00:00', username = username",
        "grid_hardwaretier SET cost_per_hour = 9",
    ],
)
async def test_write_that_no_list_shows_is_not_published(store: Store, execution: Execution, written: str) -> None:
    async with store.listening() as feed:
        await store.write(f"UPDATE {written}", "UPDATE grid_execution SET title = 'x'")
        assert await feed.next() == {Change(execution.pk)}


async def test_a_database_without_triggers_is_no_feed(store: Store) -> None:
    """It would be heard as one to which nothing is written."""
    table = " ON grid_execution" if connection.vendor == "postgresql" else ""
    await store.write(f"DROP TRIGGER grid_execution_update_said{table}")
    try:
        with pytest.raises(FeedLost, match=r"no triggers grid_execution_update_said; `manage.py migrate`"):
            await anext(store.feed.changes())
    finally:
        await sync_to_async(triggers.install)("default", plan=[])


def test_triggers_are_away_only_while_migrations_run(execution: Execution) -> None:
    triggers.take_away("default", plan=[])
    assert present() == triggers.names(), "nothing is to be migrated"
    triggers.take_away("default", plan=["something"])
    assert not present()
    triggers.install("default")
    assert not present(), "after a flush, which has no plan"
    triggers.install("default", plan=["something"])
    assert present() == triggers.names()


async def test_open_feed_is_lost_when_its_triggers_are_removed(store: Store) -> None:
    async with store.listening() as feed:
        table = " ON grid_membership" if connection.vendor == "postgresql" else ""
        await store.write(f"DROP TRIGGER grid_membership_update_said{table}")
        if connection.vendor == "postgresql":
            await store.write(f"SELECT pg_notify('{triggers.CHANNEL}', 'everything')")
        try:
            with pytest.raises(FeedLost, match="no triggers grid_membership_update_said"):
                await feed.next()
        finally:
            await sync_to_async(triggers.install)("default", plan=[])


@ON_SQLITE
async def test_write_between_two_polls_is_published_next_time(
    store: Store, execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, write = changefeed._newest, f"UPDATE grid_execution SET title = 'x' WHERE id = '{execution.pk}'"
    async with store.listening() as feed:

        def late(connection: sqlite3.Connection) -> int:
            monkeypatch.setattr(changefeed, "_newest", newest)
            store.execute(write)
            return newest(connection)

        monkeypatch.setattr(changefeed, "_newest", late)
        await store.write("UPDATE grid_project SET description = 'of which nobody is told'")
        assert await feed.next() == {Change(execution.pk)}


@ON_SQLITE
async def test_restored_copy_is_published_as_everything(store: Store, tmp_path: Path) -> None:
    path, copy = tmp_path / "grid.sqlite3", tmp_path / "copy.sqlite3"

    def copied(source: Path, target: Path) -> None:
        with sqlite3.connect(source) as original, sqlite3.connect(target) as other:
            original.backup(other)
        original.close()
        other.close()

    await asyncio.to_thread(copied, path, copy)
    async with store.listening() as feed:
        for number in range(5):
            await store.write(f"UPDATE grid_execution SET title = 'number {number}'")
            await feed.next()
        await asyncio.to_thread(copied, copy, path)
        assert await feed.next() == {EVERYTHING}
        await store.write("UPDATE grid_execution SET title = 'after'")
        assert EVERYTHING not in await feed.next()


@ON_SQLITE
async def test_change_forgotten_before_reading_is_published_as_everything(store: Store, execution: Execution) -> None:
    async with store.listening() as feed:
        write = "UPDATE grid_execution SET title = 'x'"
        await store.write(write)
        await feed.next()
        # At once: a feed that hears of the writes before they are forgotten has lost nothing.
        forget = f"DELETE FROM {TABLE} WHERE number < (SELECT max(number) FROM {TABLE})"
        await store.write_at_once(write, write, write, forget)
        assert await feed.next() == {EVERYTHING}


@ON_SQLITE
async def test_missing_file_is_reported_and_not_created(tmp_path: Path) -> None:
    feed = SqliteFeed(str(tmp_path / "none.sqlite3"))
    with pytest.raises(FeedLost, match="No such file"):
        await anext(feed.changes())
    assert not await asyncio.to_thread(lambda: list(tmp_path.iterdir()))


@ON_POSTGRESQL
async def test_a_connection_that_the_server_ends_is_said(store: Store) -> None:
    async with store.listening() as feed:
        await store.write(THE_LISTENERS_END)
        with pytest.raises(FeedLost, match=r"terminating connection|closed the connection"):
            await feed.next()


def present() -> set[str]:
    """The triggers that there are."""
    with connection.cursor() as cursor:
        cursor.execute(triggers.LISTED[connection.vendor])
        return {name for (name,) in cursor.fetchall()}
