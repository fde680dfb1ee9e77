"""Periodic tasks run at their intervals, are tried again with a growing delay, and what became of them is recorded; in virtual time."""

import asyncio
import logging
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError

from grid.core.errors import ClusterUnavailable
from grid.database.periodic import PeriodicRunner, PeriodicTask, RunsIn, TaskRecord, which_exist
from grid.database.trouble import TroubleLog
from grid.models import User
from grid.observability import telemetry
from tests.support.shop import NOW
from tests.support.virtual import cancelled, loop_time, passes, virtual_time


class Work:
    """Notes when it is run; a run takes so long, and raises or returns what comes next of `ends`."""

    def __init__(self, *ends: Exception | float | None, takes: float = 0.0) -> None:
        self.began_at: list[float] = []
        self._ends = list(ends)
        self._takes = takes

    async def run_once(self) -> float | None:
        self.began_at.append(loop_time())
        await asyncio.sleep(self._takes)
        end = self._ends.pop(0) if self._ends else None
        if isinstance(end, Exception):
            raise end
        return end

    @property
    def pauses(self) -> list[float]:
        """From the end of each run to the beginning of the next, in seconds."""
        return [later - earlier - self._takes for earlier, later in zip(self.began_at, self.began_at[1:], strict=False)]


def new_runner(database: Any = None) -> PeriodicRunner:
    began = loop_time()
    clock = lambda: NOW + timedelta(seconds=loop_time() - began)  # noqa: E731
    return PeriodicRunner(TroubleLog(loop_time), clock=clock, rng=random.Random(1), database=database)


async def record_after(seconds: float, *tasks: PeriodicTask) -> TaskRecord:
    """Run the tasks for so long; return the record of the first."""
    runner = new_runner()
    running = asyncio.create_task(runner.run(tasks))
    await passes(seconds)
    first = runner.records[0]
    await cancelled(running)
    return first


def sample(name: str, task: str) -> float | None:
    return telemetry.REGISTRY.get_sample_value(f"compute_grid_periodic_task_{name}", {"task": task})


@virtual_time
async def test_task_runs_at_its_interval_less_jitter() -> None:
    work = Work(takes=1.0)
    record = await record_after(100.0, PeriodicTask("sweep", 10.0, work.run_once))
    assert all(9.0 <= pause <= 10.0 for pause in work.pauses) and len(set(work.pauses)) > 5
    assert (record.name, record.interval, record.where, record.seconds) == ("sweep", 10.0, RunsIn.LEADER, 1.0)
    assert record.started_at == NOW + timedelta(seconds=work.began_at[-1] - work.began_at[0])
    assert record.failures == 0 and record.error == ""


@virtual_time
async def test_returned_seconds_replace_the_interval() -> None:
    work = Work(0.0, 25.0, None)
    await record_after(60.0, PeriodicTask("due work", 5.0, work.run_once))
    assert work.pauses[:2] == [0.0, 25.0] and 4.5 <= work.pauses[2] <= 5.0


@virtual_time
async def test_failures_back_off_with_jitter() -> None:
    work = Work(*(ClusterUnavailable("gone") for _ in range(9)))
    await record_after(120.0, PeriodicTask("nodes", 1.0, work.run_once))
    assert work.pauses[0] == 1.0 < work.pauses[3] < work.pauses[5]
    assert min(work.pauses[5:9]) >= 7.5 and max(work.pauses[5:9]) <= 15.0 and len(set(work.pauses[5:9])) == 4
    assert work.pauses[9] <= 1.0  # it works again


@virtual_time
async def test_tasks_without_work_share_a_question_and_run_each_minute() -> None:
    works, asked, began = [Work(), Work()], list[float](), loop_time()
    due = {0: [False, False], 30: [False, True], 40: OperationalError("gone"), 42: [False, False]}

    async def database(question: object, rows: Sequence[object]) -> Any:
        assert len(rows) == 2
        asked.append(loop_time() - began)
        answer = due[max(second for second in due if second <= asked[-1])]
        if isinstance(answer, Exception):
            raise answer
        return answer

    tasks = [
        PeriodicTask(f"task {n}", 2.0, work.run_once, work=lambda now: User.objects.all())
        for n, work in enumerate(works)
    ]
    running = asyncio.create_task(new_runner(database).run(tasks))
    await passes(110.0)
    await cancelled(running)
    assert asked == [pytest.approx(2.0 * place) for place in range(1, len(asked) + 1)]
    first, second = ([round(at - began) for at in work.began_at] for work in works)
    # Once at first, when the database did not say, and a minute after a pause.
    assert first == [0, 40, 102]
    assert second[:6] == [0, 30, 32, 34, 36, 38]


@virtual_time
async def test_task_that_knows_of_more_waits_for_no_question() -> None:
    work = Work(0.0, 0.5, None)

    async def database(question: object, rows: Sequence[object]) -> Any:
        return [False]

    task = PeriodicTask("task", 5.0, work.run_once, work=lambda now: User.objects.all())
    running = asyncio.create_task(new_runner(database).run([task]))
    await passes(50.0)
    await cancelled(running)
    assert work.pauses == [0.0, 0.5]


@pytest.mark.django_db
def test_existence_of_rows_of_many_tables_is_asked_in_a_statement(django_assert_num_queries: Any) -> None:
    User.objects.create(username="ann", date_joined=NOW)
    rows = [
        User.objects.filter(date_joined__lte=NOW),
        User.objects.filter(date_joined__gt=NOW),
        Group.objects.filter(name="a"),
    ]
    with django_assert_num_queries(1):
        assert which_exist([*rows, User.objects.order_by("pk")]) == [True, False, False, True]


@virtual_time
async def test_event_ends_a_pause() -> None:
    work, event, began = Work(), asyncio.Event(), loop_time()
    running = asyncio.create_task(new_runner().run([PeriodicTask("mail", 60.0, work.run_once, woken_by=event)]))
    await passes(3.0)
    event.set()
    await passes(1.0)
    assert work.began_at == [began, began + 3.0] and not event.is_set()
    await passes(60.0)
    assert len(work.began_at) == 3
    await cancelled(running)


@virtual_time
async def test_failures_are_recorded_until_the_task_succeeds() -> None:
    work = Work(None, ClusterUnavailable("first"), ClusterUnavailable("second"))
    runner = new_runner()
    running = asyncio.create_task(runner.run([PeriodicTask("drains", 10.0, work.run_once)]))
    await passes(25.0)
    failing = runner.records[0]
    assert (failing.failures, failing.failures_in_a_row, failing.error) == (2, 2, "second")
    assert failing.succeeded_at == NOW and failing.failing_since is not None
    assert NOW + timedelta(seconds=9) <= failing.failing_since <= NOW + timedelta(seconds=10)
    await passes(15.0)
    well = runner.records[0]
    assert (well.failures, well.failures_in_a_row, well.error, well.failing_since) == (2, 0, "", None)
    await cancelled(running)


@virtual_time
async def test_hanging_run_is_recorded_and_delays_no_other() -> None:
    hanging, other = Work(takes=1e6), Work()
    tasks = PeriodicTask("hangs", 1.0, hanging.run_once), PeriodicTask("other", 1.0, other.run_once)
    record = await record_after(30.0, *tasks)
    assert record.is_running and record.started_at == NOW and record.succeeded_at is None
    assert len(other.began_at) >= 30


@pytest.mark.parametrize(
    ("error", "level", "text"),
    [
        (ClusterUnavailable("no answer"), "WARNING", "no answer"),
        (ValueError("a bug\nof ours"), "ERROR", "ValueError; the log says more"),
    ],
)
def test_failure_is_logged_once_and_its_end_too(
    error: Exception, level: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual_time
    async def fails_three_times() -> None:
        await record_after(10.0, PeriodicTask("odd", 1.0, Work(error, error, error).run_once))

    caplog.set_level(logging.INFO, "grid.database.periodic")
    fails_three_times()
    messages = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert messages == [
        (level, f"periodic task failed task=odd reason={text}"),
        ("INFO", "periodic task works again task=odd failures=3"),
    ]


@virtual_time
async def test_metrics_count_runs_and_failures_of_each_task() -> None:
    runner = new_runner()
    work = Work(None, ClusterUnavailable("gone"), takes=2.0)
    running = asyncio.create_task(runner.run([PeriodicTask("metered", 10.0, work.run_once)]))
    await passes(14.5)
    assert (sample("seconds_count", "metered"), sample("seconds_sum", "metered")) == (2.0, 4.0)
    assert sample("failures_total", "metered") == 1.0
    assert sample("last_success_timestamp_seconds", "metered") == NOW.timestamp() + 2.0
    await cancelled(running)
    assert sample("last_success_timestamp_seconds", "metered") is None
