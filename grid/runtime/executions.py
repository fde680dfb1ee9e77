"""The database's active and recently ended executions, in memory, so that a page with a thousand viewers costs no queries.

The change feed names the executions that any process wrote, and only those are read again. While it is silent or lost, and periodically
in any case, the versions of all are compared, so a change that it missed is seen then. `hint()` tells of one here, from any thread.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from random import Random
from typing import Any

from grid.core.workqueue import in_slices
from grid.database import threads as database
from grid.database.changefeed import EVERYTHING, Change, ChangeFeed, FeedSubscriber
from grid.kube.hub import NAME, Hub
from grid.runtime.executionrows import ExecutionRow, read_rows, read_versions
from grid.runtime.written import publish_written

logger = logging.getLogger(__name__)

TOPIC = "executions"
OWNER = "owner"  # name of the index by owner
PERIOD = 1.0  # between two comparisons while a page is open and no feed works
IDLE_PERIOD = 10.0  # while no page is open
TOLD_PERIOD = 60.0  # while a feed works, which can lose a change without knowing; a write of our own that it does not tell is looked for
WHOLE_PERIOD = 30.0  # names can change without the execution's row being written
LONGEST_PERIOD = 600.0  # when a feed reports changed names too
MERGE_SECONDS = 0.05  # changes reported within this time are read together
REST = 3.0  # pause after a read, in multiples of its duration, so that a stream of changes leaves time for other work
LAST_SECONDS = 5.0  # for a running read when the process ends
MOST_BY_ID = 500  # above this number all rows are compared instead
PUT_AT_ONCE = 500  # rows, 4 ms
COMPARED_AT_ONCE = 2_000  # versions, 2 to 6 ms

Clock = Callable[[], datetime]
Ask = Callable[[Callable[[datetime], Any], datetime], Awaitable[Any]]


async def _run(read: Callable[[datetime], Any], now: datetime) -> Any:
    """Run a read of the ORM in a thread. A cancelled caller waits a while for it, lest it read after what comes next."""
    reader = asyncio.ensure_future(database.background.run(read, now))
    reader.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        return await asyncio.shield(reader)
    except asyncio.CancelledError:
        await asyncio.wait([reader], timeout=LAST_SECONDS)
        raise


RowListener = Callable[[ExecutionRow | None, ExecutionRow | None], None]


class ActiveExecutions:
    """The snapshot of executions. `run()` keeps it fresh; `refresh()` and `read_changes()` make it fresh now, one after the other."""

    def __init__(
        self, hub: Hub, *, clock: Clock, feed: ChangeFeed | None = None, ask: Ask = _run, rng: Random | None = None
    ) -> None:
        self._hub, self._clock = hub, clock
        self._listener = FeedSubscriber(feed, self._take_news, rng=rng or Random()) if feed is not None else None
        self._ask = ask
        self._rows: dict[str, ExecutionRow] = {}
        columns = ("owner_id", "project_id", "tier_id")
        self._by: dict[str, dict[int | str, dict[str, ExecutionRow]]] = {column: {} for column in columns}
        self._roles_in: dict[str, Mapping[int, str]] = {}  # by project, from its row that was read last
        self._listeners: list[RowListener] = []
        self._roles: object = None
        self._all_told = self._all_read = 0  # changes of names that were reported, and how many of these were read
        self._named_at = float("-inf")  # when all rows were last read, with the names that they show
        self._looked_at = float("-inf")
        self._reading = asyncio.Lock()  # so that an older read never overwrites a newer one
        self._news: set[Change] = set()
        self._doubted_at = float("inf")  # when the feed should have reported a write of this process
        self._awake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def _is_told(self) -> bool:
        return self._listener is not None and self._listener.is_told

    @property
    def are_read(self) -> bool:
        """True once all have been read."""
        return self._named_at > float("-inf")

    def get(self, id: str) -> ExecutionRow | None:
        return self._rows.get(id)

    def values(self) -> Collection[ExecutionRow]:
        """Return all rows, in no order; a live view, so do not await while iterating."""
        return self._rows.values()

    def of_owner(self, user_id: int) -> Collection[ExecutionRow]:
        """Return one person's rows, in no order; a live view like `values`."""
        return self._by["owner_id"].get(user_id, {}).values()

    def seen_by(self, user_id: int) -> Iterator[ExecutionRow]:
        """Yield the rows that a person owns, and those of the person's projects, in no order."""
        yield from self.of_owner(user_id)
        for project, roles in self._roles_in.items():
            if user_id in roles:
                yield from (row for row in self._by["project_id"][project].values() if row.owner_id != user_id)

    def one_of_each(self) -> Iterator[ExecutionRow]:
        """Yield rows among which each owner, project and tier of any row occurs: far fewer than all rows."""
        for index in self._by.values():
            yield from (next(iter(rows.values())) for rows in index.values())

    def subscribe(self, listener: RowListener) -> None:
        """Call `listener` with the old and the new row after each change; None stands for a row that did not exist, or is gone."""
        self._listeners.append(listener)

    def hint(self) -> None:
        """Compare now because an execution was written, or soon if a feed does not report it. Safe from any thread and at any time."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take_hint, self._loop)

    def _take_hint(self, loop: asyncio.AbstractEventLoop) -> None:
        self._doubted_at = min(self._doubted_at, loop.time() + (PERIOD if self._is_told else 0))
        self._awake.set()

    def _take_news(self, news: Collection[Change]) -> None:
        publish_written(self._hub, news)
        others = [change for change in news if not change.is_for_pages]
        if not others:
            return
        self._news.update(others)
        if len(self._news) > MOST_BY_ID:
            self._news = {EVERYTHING}
        if EVERYTHING in self._news:
            self._all_told += 1
        self._awake.set()

    async def refresh(self) -> bool:
        """Compare the versions of all executions and read those that differ. Return True, and publish, when a row changed."""
        async with self._reading:
            return await self._compare()

    async def read_changes(self, changes: Collection[Change]) -> bool:
        """Read only the executions of `changes`. Return True, and publish the hub's topic, when a row changed."""
        async with self._reading:
            projects = {change.project for change in changes if change.project}
            ids = {change.execution for change in changes if change.execution}
            if projects:
                ids |= {row.id for row in self._rows.values() if row.project_id in projects}
            if len(ids) > MOST_BY_ID or EVERYTHING in changes:
                return await self._compare()
            if not ids:
                return False
            rows = await self._ask(partial(read_rows, ids=ids), self._clock())
            return await self._replace_some(ids, rows)

    async def _compare(self) -> bool:
        now, loop_time, reported = self._clock(), asyncio.get_running_loop().time(), self._all_told
        self._looked_at = loop_time
        versions, roles = await self._ask(read_versions, now)
        known = self._rows
        wanted = set[str]()
        async for id in in_slices(versions, COMPARED_AT_ONCE):
            if id not in known or known[id].version != versions[id]:
                wanted.add(id)
        old = loop_time - self._named_at >= (LONGEST_PERIOD if self._is_told else WHOLE_PERIOD)
        if old or reported != self._all_read or roles != self._roles or len(wanted) > MOST_BY_ID:
            rows = await self._ask(read_rows, now)
            changed = await self._replace_some({row.id for row in rows} | known.keys(), rows)
            self._roles, self._all_read, self._named_at = roles, reported, loop_time
            return changed
        gone = known.keys() - versions.keys()
        rows = await self._ask(partial(read_rows, ids=wanted), now) if wanted else []
        return await self._replace_some(wanted | gone, rows)

    async def _replace_some(self, ids: Collection[str], rows: Iterable[ExecutionRow]) -> bool:
        """Replace the rows of these ids by `rows`, in slices; all others stay. Return True when a row changed."""
        new = {row.id: row for row in rows}
        changed = False
        try:
            async for id in in_slices(ids, PUT_AT_ONCE):
                changed |= self._put(id, new.get(id))
        finally:  # also when cancelled between two slices
            if changed:
                self._hub.publish(TOPIC)
        return changed

    def _put(self, id: str, new: ExecutionRow | None) -> bool:
        """Store one row, or remove it when None; return True and tell the listeners when it changed, not only its version."""
        old = self._rows.get(id)
        if old is not None and new is not None and old == new:
            self._rows[id] = new
            for column, index in self._by.items():
                index[getattr(new, column)][id] = new
            return False
        self._rows.pop(id, None)
        for column, index in self._by.items():
            if old is not None:
                rows = index[getattr(old, column)]
                del rows[id]
                if not rows:
                    del index[getattr(old, column)]
            if new is not None:
                index.setdefault(getattr(new, column), {})[id] = new
        if old is not None and old.project_id not in self._by["project_id"]:
            del self._roles_in[old.project_id]
        if new is not None:
            self._rows[id] = new
            self._roles_in[new.project_id] = new.project_roles
        if old is None and new is None:
            return False
        self._announce(id, old, new)
        return True

    def _announce(self, id: str, old: ExecutionRow | None, new: ExecutionRow | None) -> None:
        for listener in self._listeners:
            try:
                listener(old, new)
            except Exception:  # one listener must not keep the change from the others
                logger.exception("a change was not taken in execution=%s", id)
        self._hub.publish((TOPIC, NAME, id))
        for owner in {row.owner_id for row in (old, new) if row is not None}:
            self._hub.publish((TOPIC, OWNER, str(owner)))

    async def catch_up(self) -> None:
        """Compare now, because an execution is missing that another process may have just created; at most once a period, whoever asks."""
        async with self._reading:  # callers that wait here share what the first has read
            if asyncio.get_running_loop().time() - self._looked_at < PERIOD:
                return
            try:
                await self._compare()
            except asyncio.CancelledError:
                self._looked_at = float("-inf")  # the next one gets all rows
                raise

    def replace(self, rows: Iterable[ExecutionRow]) -> bool:
        """Replace all rows. Return True, and publish the hub's topics, when one changed."""
        new = {row.id: row for row in rows}
        changed = True in {self._put(id, new.get(id)) for id in new.keys() | self._rows.keys()}
        if changed:
            self._hub.publish(TOPIC)
        return changed

    async def run(self) -> None:
        """Read what the feed reports, for ever, and compare all rows each period while a page is open and no feed works, else rarely."""
        self._loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            if self._listener is not None:
                tasks.create_task(self._listener.run())
                # All rows are read for the first that it tells, and not twice.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PERIOD):
                        await self._awake.wait()
            await self._look_for_ever(self._loop)

    async def _look_for_ever(self, loop: asyncio.AbstractEventLoop) -> None:
        looked_at = float("-inf")
        while True:
            self._awake.clear()
            news, self._news = self._news, set()
            period = TOLD_PERIOD if self._is_told else PERIOD if self._hub.is_watched(TOPIC) else IDLE_PERIOD
            due_at, began = looked_at + period, loop.time()
            try:
                if began >= min(due_at, self._doubted_at):
                    looked_at, self._doubted_at = began, float("inf")
                    await self.refresh()
                    news.discard(EVERYTHING)  # already read
                if news:
                    await self.read_changes(news)
            except Exception:
                logger.exception("executions not read; trying again")
                self._news |= news
                looked_at = float("-inf")
                await asyncio.sleep(PERIOD)
            await asyncio.sleep(max(MERGE_SECONDS, min(PERIOD, REST * (loop.time() - began))))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PERIOD):  # after a period without news check whether a page is open
                    await self._awake.wait()
