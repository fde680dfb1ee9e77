"""Reports which executions any process wrote, as soon as the transaction has committed.

The database's triggers report it (`grid.database.triggers`), so no writer can forget it. PostgreSQL uses LISTEN/NOTIFY. SQLite has a number
that changes with each commit of another connection (`PRAGMA data_version`), polled twenty times a second, and a table of what was written.

A feed that cannot hear (no triggers, a pooler that swallows LISTEN, a replaced database file) must not pass for a feed without changes, so
it raises FeedLost.
"""

import asyncio
import contextlib
import logging
import math
import random
import secrets
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.sqlite3.base import DatabaseWrapper as SqliteWrapper

from grid.core.backoff import Backoff
from grid.database import triggers
from grid.database.triggers import CHANNEL, TABLE

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 0.05
# Of a controller, which nobody watches: looking costs a tenth of what it does while all rests, most of it for waking up.
CONTROLLER_PERIOD_SECONDS = 0.1
IDENTITY_SECONDS = 1.0  # between two looks whether the file is still the same
SOUND_SECONDS = 5.0  # a feed that is lost sooner does not count as recovered
PROBE_SECONDS = 60.0  # a feed that was silent this long is probed
ANSWER_SECONDS = 5.0
_CONNECTION_ONLY = frozenset({"context", "cursor_factory"})  # parameters for Django's own connections only
_PROBE = "probe:"


class FeedLost(Exception):
    """The feed no longer reports changes; what was written since is not known."""


@dataclass(frozen=True, slots=True)
class Change:
    """What was written, or the launch that is to be checked, by an id of its kind; the default means anything in the database."""

    execution: str = ""
    project: str = ""
    check: str = ""
    person: str = ""
    jobs_of: str = ""  # a person's id
    job: str = ""

    @property
    def is_for_pages(self) -> bool:
        """Only pages show it; nothing is decided by it."""
        return bool(self.person or self.jobs_of or self.job)

    @classmethod
    def parse(cls, text: str) -> "Change":
        """Parse a trigger's text, such as `execution:ID` or `jobs-of:ID`; anything else is EVERYTHING."""
        kind, _, id = text.partition(":")
        return cls(**{kind.replace("-", "_"): id}) if kind in _KINDS else cls()


_KINDS = ("execution", "project", "check", "person", "jobs-of", "job")
EVERYTHING = Change()


class ChangeFeed(Protocol):
    def changes(self) -> AsyncGenerator[Collection[Change]]:
        """Yield EVERYTHING once no change will be missed any more, then the changes. Raise FeedLost, after which the caller may start
        again."""
        ...


class SqliteFeed:
    """The feed of a SQLite file; a database in memory needs none, as no other process has it."""

    def __init__(self, path: str, *, period: float = PERIOD_SECONDS) -> None:
        self._path = Path(path).absolute()
        self._period = period

    async def changes(self) -> AsyncGenerator[Collection[Change]]:
        # One thread opens, reads and closes: closing a connection while another thread uses it kills the process.
        loop, ended = asyncio.get_running_loop(), threading.Event()
        heard: asyncio.Queue[Collection[Change] | FeedLost] = asyncio.Queue()

        def tell(what: Collection[Change] | FeedLost) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(heard.put_nowait, what)

        threading.Thread(target=self._follow, args=(tell, ended), name="change feed", daemon=True).start()
        try:
            while True:
                what = await heard.get()
                if isinstance(what, FeedLost):
                    raise what
                yield what
        finally:
            ended.set()

    def _follow(self, tell: Callable[[Collection[Change] | FeedLost], None], ended: threading.Event) -> None:
        try:
            file = _identity(self._path)
            uri = f"{self._path.as_uri()}?mode=rw"  # which never creates an empty file where there is none
            with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=1.0)) as connection:
                schema = _refuse_deaf_file(connection)
                # The version is read first: a write between the two reads changes it again.
                version, last = _pragma(connection, "data_version"), _newest(connection)
                tell({EVERYTHING})
                looked_at = time.monotonic()
                while not ended.is_set():
                    time.sleep(self._period)  # waiting for the event costs more, and does so twenty times a second
                    if time.monotonic() - looked_at >= IDENTITY_SECONDS:
                        looked_at = time.monotonic()
                        if _identity(self._path) != file:
                            raise FeedLost("the database's file was replaced by another")
                    now = _pragma(connection, "data_version")
                    if now != version:
                        version, (last, changes) = now, _written(connection, last)
                        if _pragma(connection, "schema_version") != schema:
                            schema = _refuse_deaf_file(connection)
                        if changes:
                            tell(changes)
        except (FeedLost, sqlite3.Error, OSError) as error:
            tell(FeedLost(str(error)))
        except Exception as error:
            logger.exception("the change feed failed")
            tell(FeedLost(f"{type(error).__name__}: {error}"))


def _identity(path: Path) -> tuple[int, int]:
    file = path.stat()
    return file.st_dev, file.st_ino


def _newest(connection: sqlite3.Connection) -> int:
    return int(connection.execute(f"SELECT coalesce(max(number), 0) FROM {TABLE}").fetchone()[0])


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _refuse_deaf_file(connection: sqlite3.Connection) -> int:
    """Raise FeedLost unless all triggers are there; return the version of the schema that has them."""
    version = _pragma(connection, "schema_version")
    _refuse_deaf(connection.execute(triggers.LISTED["sqlite"]))
    return version


def _written(connection: sqlite3.Connection, last: int) -> tuple[int, set[Change]]:
    """Return the newest number, and what was written after the number `last`."""
    rows = connection.execute(f"SELECT number, what FROM {TABLE} WHERE number > ? ORDER BY number", (last,)).fetchall()
    if not rows:
        # Lower when a copy was restored into the file; higher when there was a write since, which the next call reads.
        newest = _newest(connection)
        return (newest, {EVERYTHING}) if newest < last else (last, set())
    # The table keeps only the latest rows.
    is_missing = rows[0][0] != last + 1
    return rows[-1][0], {EVERYTHING} if is_missing else {Change.parse(what) for _, what in rows}


class PostgresFeed:
    """The feed of a PostgreSQL server, on a connection of its own: behind a pooler in transaction mode LISTEN would deliver nothing."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters

    async def changes(self) -> AsyncGenerator[Collection[Change]]:
        try:
            async with await self._connect() as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                await _refuse_deaf_server(connection)
                yield await self._probe(connection) | {EVERYTHING}
                while True:
                    # Ends after the first notification, with all that came with it, or without any after a long silence.
                    texts = await _heard(connection, PROBE_SECONDS)
                    changes = _parsed(texts) if texts else await self._probe_again(connection)
                    if EVERYTHING in changes or not texts:
                        await _refuse_deaf_server(connection)
                    if changes:
                        yield changes
        except (psycopg.Error, OSError) as error:  # a timeout is an OSError
            raise FeedLost(str(error).strip() or type(error).__name__) from error

    async def _connect(self) -> "psycopg.AsyncConnection[Any]":
        return await psycopg.AsyncConnection.connect(**{**self._parameters, "autocommit": True})

    async def _probe_again(self, connection: "psycopg.AsyncConnection[Any]") -> set[Change]:
        """Probe the connection; when the server accepts no second connection, only check that the first still answers."""
        try:
            return await self._probe(connection)
        except psycopg.OperationalError:
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.execute("SELECT 1")
            return set()

    async def _probe(self, connection: "psycopg.AsyncConnection[Any]") -> set[Change]:
        """Return what else arrived while a probe, from another session because a pooler may return a session its own, made its round."""
        word = f"{_PROBE}{secrets.token_hex(8)}"
        async with await self._connect() as other:
            await other.execute("SELECT pg_notify(%s, %s)", (CHANNEL, word))
        texts: list[str] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                while word not in texts:
                    texts += await _heard(connection, ANSWER_SECONDS)
        if word not in texts:
            raise FeedLost("LISTEN hears nothing, as behind a pooler in transaction mode")
        return _parsed(texts)


async def _heard(connection: "psycopg.AsyncConnection[Any]", seconds: float) -> list[str]:
    return [notify.payload async for notify in connection.notifies(timeout=seconds, stop_after=1)]


async def _refuse_deaf_server(connection: "psycopg.AsyncConnection[Any]") -> None:
    _refuse_deaf(await (await connection.execute(triggers.LISTED["postgresql"])).fetchall())


def _parsed(texts: Collection[str]) -> set[Change]:
    return {Change.parse(text) for text in texts if not text.startswith(_PROBE)}


def _refuse_deaf(present: Iterable[Sequence[str]]) -> None:
    if missing := triggers.names() - {name for (name,) in present}:
        raise FeedLost(f"the database has no triggers {', '.join(sorted(missing))}; `manage.py migrate` makes them")


class FeedSubscriber:
    """Listens to a feed for ever, and starts again when it is lost."""

    def __init__(self, feed: ChangeFeed, heard: Callable[[Collection[Change]], None], *, rng: random.Random) -> None:
        self.is_told = False  # whether every change is reported now
        self._feed, self._heard = feed, heard
        self._backoff = Backoff(longest=30.0, rng=rng)

    async def run(self) -> None:
        """Listen for ever. The first loss is a warning; later ones are not, until the feed has worked for a while."""
        is_failing, loop = False, asyncio.get_running_loop()
        while True:
            heard_at, lost = math.inf, "it ended"
            try:
                async with aclosing(self._feed.changes()) as feed:
                    async for changes in feed:
                        heard_at = min(heard_at, loop.time())
                        self.is_told = True
                        self._heard(changes)
            except FeedLost as error:
                lost = str(error)
            except Exception as error:  # the subscriber polls instead, and must not fail with the feed
                logger.exception("the change feed failed")
                lost = f"{type(error).__name__}: {error}"
            finally:
                self.is_told = False
            if loop.time() - heard_at >= SOUND_SECONDS:
                self._backoff.reset()
                is_failing = False
            level = logging.DEBUG if is_failing else logging.WARNING
            logger.log(level, "changes are not told, asking for them reason=%s", lost)
            is_failing = True
            await asyncio.sleep(self._backoff.next())


def feed_of(*, period: float = PERIOD_SECONDS) -> ChangeFeed | None:
    """Return the feed of the database; None when it has none. A SQLite file is looked at each `period` seconds."""
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor == "postgresql":
        parameters = connection.get_connection_params()
        return PostgresFeed({name: value for name, value in parameters.items() if name not in _CONNECTION_ONLY})
    if not isinstance(connection, SqliteWrapper) or connection.is_in_memory_db():
        return None
    return SqliteFeed(str(connection.settings_dict["NAME"]), period=period)
