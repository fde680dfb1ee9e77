"""Periodic tasks: what a process does again and again, declared as data by its room, and run and recorded in one place.

The controller's list is `grid.controller.periodictasks`, a web process's `grid.runtime.periodictasks`. Doing a task twice has to change
nothing: for a moment two controllers may lead.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec
from django.db import connection
from django.db.models import QuerySet, Value

from grid.core.backoff import Backoff
from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.core.wording import one_line
from grid.database.seam import Database
from grid.database.trouble import TroubleLog, trouble_of
from grid.observability import telemetry

logger = logging.getLogger(__name__)

LONGEST_BACKOFF_SECONDS = 15.0
ASK_SECONDS = 2.0  # between two questions which tasks have work
WORKLESS_SECONDS = 60.0  # after which a task runs although none of its work was there
_LONGEST_ERROR = 300
_LEAST_PAUSE = 0.9  # of the interval: tasks do not keep in step


class RunsIn(StrEnum):
    """Where a task runs."""

    LEADER = "leader"
    EVERY_PROCESS = "every process"


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A periodic task; all times are in seconds. Its name labels its metrics and is shown on *Platform health*.

    `run_once` is awaited again `interval` after it has returned, less up to a tenth so that tasks do not keep in step; or after the number
    that it returned; or `rest` times as long as it took, when that is longer. When it raises, it is tried again after `retry` (the
    interval, when None) or a growing delay, whichever is longer. It first runs `first_after` the start, once `ready` has returned.
    `woken_by` ends a pause; it is cleared before each run. `within` is entered before the first run, and left when the task ends.

    `work` returns the rows without which a run does nothing. A runner with a database asks for those of all tasks in one statement, and
    runs the task after its pause only once there are some, or a minute later.
    """

    name: str
    interval: float
    run_once: Callable[[], Awaitable[float | None]]
    where: RunsIn = RunsIn.LEADER
    first_after: float = 0.0
    ready: Callable[[], Awaitable[None]] | None = None
    retry: float | None = None
    rest: float = 0.0
    woken_by: asyncio.Event | None = None
    within: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    work: Callable[[datetime], "QuerySet[Any]"] | None = None


class TaskRecord(msgspec.Struct, frozen=True):
    """How a task went since its process, or the term of leadership, began. `due_at` is None while it runs, and while it waits until it may
    run first; `seconds` is what the last run took. `error` and `failing_since` are of the failures in a row, "" and None without any."""

    name: str
    interval: float
    where: RunsIn = RunsIn.LEADER
    started_at: datetime | None = None
    succeeded_at: datetime | None = None
    due_at: datetime | None = None
    seconds: float | None = None
    failures: int = 0
    failures_in_a_row: int = 0
    failing_since: datetime | None = None
    error: str = ""

    @property
    def is_running(self) -> bool:
        return self.started_at is not None and self.due_at is None


def which_exist(querysets: "Sequence[QuerySet[Any]]") -> list[bool]:
    """Return of each whether it has a row, all in one statement."""
    parts = [rows.order_by().values_list(Value(1))[:1].query.sql_with_params() for rows in querysets]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(f'EXISTS({sql})' for sql, _ in parts)}",
            [value for _, params in parts for value in params],
        )
        return list(map(bool, cursor.fetchone()))


class PeriodicRunner:
    """Runs periodic tasks, each in a task of its own, so that one that waits or fails holds up no other, and records how they go."""

    def __init__(
        self,
        troubles: TroubleLog,
        *,
        clock: Callable[[], datetime],
        rng: random.Random,
        database: Database | None = None,
    ) -> None:
        self._troubles, self._clock, self._rng, self._database = troubles, clock, rng, database
        self._records: dict[str, TaskRecord] = {}
        self._has_work: Mapping[str, asyncio.Event] = {}

    @property
    def records(self) -> Sequence[TaskRecord]:
        return tuple(self._records.values())

    async def run(self, tasks: Sequence[PeriodicTask]) -> None:
        """Run the tasks until cancelled. Raise ValueError when two have the same name."""
        self._records = {task.name: TaskRecord(task.name, task.interval, task.where) for task in tasks}
        if len(self._records) < len(tasks):
            raise ValueError(f"two periodic tasks have the same name: {sorted(task.name for task in tasks)}")
        work = {task.name: task.work for task in tasks if task.work is not None and self._database is not None}
        self._has_work = {name: asyncio.Event() for name in work}
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(self._repeat(task), name=f"periodic {task.name}")
            if self._database is not None and work:
                group.create_task(self._ask_for_ever(self._database, work), name="periodic work")

    async def _repeat(self, task: PeriodicTask) -> None:
        backoff = Backoff(longest=LONGEST_BACKOFF_SECONDS, rng=self._rng)
        try:
            async with task.within():
                if task.ready is not None:
                    await task.ready()
                await self._pause(task, task.first_after, task.woken_by)
                while True:
                    seconds = await self._run(task, backoff)
                    is_woken, has_work = await self._pause(task, seconds, task.woken_by), self._has_work.get(task.name)
                    # After a shorter pause than usual it knows of more to do.
                    if has_work is not None and not is_woken and seconds >= _LEAST_PAUSE * task.interval:
                        await self._pause(task, WORKLESS_SECONDS, has_work)
        finally:
            telemetry.forget_periodic(task.name)

    async def _run(self, task: PeriodicTask, backoff: Backoff) -> float:
        """Run the task once, and return the seconds until it is due again."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for event in (task.woken_by, self._has_work.get(task.name)):
            if event is not None:
                event.clear()
        self._change(task, started_at=self._clock(), due_at=None)
        try:
            pause = await task.run_once()
        except Exception as error:
            self._failed(task, error, loop.time() - began)
            return max(task.interval if task.retry is None else task.retry, backoff.next())
        backoff.reset()
        seconds = loop.time() - began
        failures, now = self._records[task.name].failures_in_a_row, self._clock()
        self._change(task, succeeded_at=now, seconds=seconds, failures_in_a_row=0, failing_since=None, error="")
        telemetry.periodic_succeeded(task.name, seconds, now)
        self._troubles.tell_if_over()
        if failures:
            logger.info("periodic task works again task=%s failures=%d", task.name, failures)
        return max(
            task.interval * self._rng.uniform(_LEAST_PAUSE, 1.0) if pause is None else pause, task.rest * seconds
        )

    async def _pause(self, task: PeriodicTask, seconds: float, woken_by: asyncio.Event | None) -> bool:
        """Return whether the event has ended the pause."""
        self._change(task, due_at=self._clock() + timedelta(seconds=seconds))
        if woken_by is None:
            await asyncio.sleep(seconds)
            return False
        try:
            async with asyncio.timeout(seconds):
                return await woken_by.wait()
        except TimeoutError:
            return False

    async def _ask_for_ever(
        self, database: Database, work: "Mapping[str, Callable[[datetime], QuerySet[Any]]]"
    ) -> None:
        backoff, pause = Backoff(longest=LONGEST_BACKOFF_SECONDS, rng=self._rng), ASK_SECONDS
        while True:
            await asyncio.sleep(pause)
            now = self._clock()
            try:
                due: Collection[bool] = await database(which_exist, [rows(now) for rows in work.values()])
                pause = ASK_SECONDS
                backoff.reset()
            except Exception:  # each task then says itself what is wrong with the database
                due, pause = [True] * len(work), max(ASK_SECONDS, backoff.next())
            for name, is_due in zip(work, due, strict=True):
                if is_due:
                    self._has_work[name].set()

    def _failed(self, task: PeriodicTask, error: Exception, seconds: float) -> None:
        record, text = self._records[task.name], _text_of(error)
        self._change(
            task,
            seconds=seconds,
            failures=record.failures + 1,
            failures_in_a_row=record.failures_in_a_row + 1,
            failing_since=record.failing_since or self._clock(),
            error=text,
        )
        telemetry.periodic_failed(task.name, seconds)
        if self._troubles.handles(error):
            return
        is_known, is_bug = text == record.error, not isinstance(error, GridError)
        level = logging.DEBUG if is_known else logging.ERROR if is_bug else logging.WARNING
        logger.log(level, "periodic task failed task=%s reason=%s", task.name, text, exc_info=error if is_bug else None)

    def _change(self, task: PeriodicTask, **fields: object) -> None:
        self._records[task.name] = msgspec.structs.replace(self._records[task.name], **fields)


def _text_of(error: Exception) -> str:
    """Return one line about the error. Of an unexpected one only its name: its text may hold a secret, and operators read this line."""
    if (trouble := trouble_of(error)) is not None:
        return trouble.value
    if not isinstance(error, GridError):
        return _("{name}; the log says more", name=type(error).__name__)
    return one_line(str(error))[:_LONGEST_ERROR]
