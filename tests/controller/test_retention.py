"""What is older than is configured, or opens nothing any more, goes in small steps, oldest first; what it used stays, added up by day."""

import asyncio
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Sum
from hypothesis import given, strategies as st

from grid.audit.sealing import seal, verify
from grid.configuration import (
    AUDIT_RETENTION,
    EXECUTION_RETENTION,
    LIFECYCLE_RETENTION,
    LOG_RETENTION,
    METRIC_RETENTION,
    SAMPLE_RETENTION,
    SESSION_IDLE,
    value_of,
)
from grid.controller import retention
from grid.controller.housekeeping import (
    BATCH,
    CHORES,
    FIRST_SECONDS,
    PERIOD_SECONDS,
    RETRY_SECONDS,
    Chore,
    periodic,
    purge_grants,
    run_chores,
)
from grid.models import (
    AuditEntry,
    ClusterSample,
    DailyUsage,
    Execution,
    ExecutionLog,
    LifecycleEntry,
    RunMetric,
    Session,
    State,
    UsageInterval,
    User,
    WorkspaceGrant,
)
from grid.usage import usage
from grid.usage.dailyusage import Sums, added_up, by_day
from grid.usage.intervals import Changes, Interval
from tests.controller.world import in_world
from tests.support.shop import NOW, Shop
from tests.support.virtual import cancelled, passes, repeat, virtual_time

Configure = Callable[[Any, int], None]
DAY = timedelta(days=1)
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2026, 2, 1), timezones=st.just(UTC)).map(
    lambda at: at.replace(microsecond=0)
)
HELD = st.builds(
    lambda began, seconds, owner, price, size: UsageInterval(
        execution_id="e", owner_id=owner, project_id="p", tier_id="t", node_pool="default", price_per_hour=Decimal(price), millicores=size,
        mebibytes=2 * size, gpus=size % 3, began_at=began, ended_at=began + timedelta(seconds=seconds), seconds=seconds,
    ),
    MOMENTS, st.integers(0, 5 * 86_400), st.integers(1, 2), st.sampled_from(["0", "0.05", "1.3333"]), st.integers(0, 64_000),
)  # fmt: skip


@given(MOMENTS, st.integers(0, 10 * 86_400))
def test_time_is_cut_at_midnight_without_loss(began: datetime, seconds: int) -> None:
    days = list(by_day(began, began + timedelta(seconds=seconds)))
    assert sum(part for _, part in days) == seconds
    assert all(0 < part <= 86_400 for _, part in days)
    assert [day for day, _ in days] == [began.date() + number * DAY for number in range(len(days))]


@given(st.lists(HELD, max_size=12))
def test_sum_of_days_is_the_sum_of_intervals(intervals: list[UsageInterval]) -> None:
    days = added_up(intervals, {"e": "job"})
    total = sum(days.values(), Sums())
    assert total.pod_seconds == sum(interval.seconds or 0 for interval in intervals)
    assert total.millicore_seconds == sum((interval.seconds or 0) * interval.millicores for interval in intervals)
    assert total.mebibyte_seconds == sum((interval.seconds or 0) * interval.mebibytes for interval in intervals)
    assert total.gpu_seconds == sum((interval.seconds or 0) * interval.gpus for interval in intervals)
    by_price = sum(key.price_per_hour * sums.pod_seconds for key, sums in days.items())
    assert by_price == sum(interval.price_per_hour * (interval.seconds or 0) for interval in intervals)


def ended(shop: Shop, days: float, *, hours: float = 1, settled: bool = True, **changes: Any) -> Execution:
    """One that ran for so many hours on one core and ended so many days before NOW."""
    execution = shop.launch(**changes)
    at = NOW - days * DAY
    Execution.objects.filter(pk=execution.pk).update(
        state=State.STOPPED, ended_at=at, settled_at=at if settled else None, requested_at=at - timedelta(hours=hours)
    )
    pod = Interval(execution.pk, "pod", "node-1", False, at - timedelta(hours=hours), at)
    usage.record(execution.pk, Changes((pod,)))
    ExecutionLog.objects.create(execution=execution, text="the end", at=at)
    ClusterSample.objects.create(execution=execution, at=at, ready=1, wanted=1)
    RunMetric.objects.create(
        execution=execution, name="loss", points=[[0, 0, 1]], count=1, last=1, lowest=1, highest=1, at=at
    )
    LifecycleEntry.objects.create(execution=execution, at=at, source="kubernetes", event_uid="e", reason="Pulled")
    LifecycleEntry.objects.filter(execution=execution).update(at=at)
    execution.refresh_from_db()
    return execution


def whole(chore: Chore, at_most: int = 100) -> int:
    """The steps that it took until nothing was left to do."""
    return next(number for number in range(1000) if chore(NOW, at_most) == 0)


def seconds_of_days() -> dict[date, int]:
    return dict(DailyUsage.objects.values_list("day").annotate(Sum("pod_seconds")))


def test_old_execution_goes_and_its_daily_usage_stays(shop: Shop, configure: Configure) -> None:
    configure(EXECUTION_RETENTION, 30)
    ended(shop, 31, hours=10)
    young = ended(shop, 29)
    whole(retention.drop_executions)
    assert Execution.objects.get() == young
    assert UsageInterval.objects.get().execution == young
    # It ended at 9 o'clock.
    assert seconds_of_days() == {date(2026, 2, 1): 9 * 3600, date(2026, 1, 31): 3600}
    usage_row = DailyUsage.objects.get(day=date(2026, 2, 1))
    assert (usage_row.owner, usage_row.project, usage_row.tier) == (shop.people.owner, shop.project, shop.tier)
    amounts = (usage_row.millicore_seconds, usage_row.mebibyte_seconds, usage_row.gpu_seconds)
    assert amounts == (9 * 3600 * 1000, 9 * 3600 * 4096, 0)
    assert usage_row.price_per_hour == Decimal("0.05")


def test_later_drops_add_to_the_same_day(shop: Shop, configure: Configure) -> None:
    configure(EXECUTION_RETENTION, 30)
    for _ in range(2):
        ended(shop, 31)
        ended(shop, 31)
        whole(retention.drop_executions)
    usage_row = DailyUsage.objects.get()
    assert (usage_row.pod_seconds, usage_row.millicore_seconds) == (4 * 3600, 4 * 3600 * 1000)


def test_steps_are_small_and_kills_lose_nothing(shop: Shop, configure: Configure) -> None:
    configure(EXECUTION_RETENTION, 30)
    for number in range(5):
        ended(shop, 31 + number)
    sizes = [retention.drop_executions(NOW, 2) for _ in range(40)]
    assert max(sizes) == 2
    assert sizes[-1] == 0
    assert not Execution.objects.exists()
    assert sum(seconds_of_days().values()) == 5 * 3600


def test_a_step_that_fails_half_way_has_done_nothing(
    shop: Shop, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(EXECUTION_RETENTION, 30)
    ended(shop, 31)

    def fail(*args: object) -> int:
        raise OSError("the disk is full")

    for parts in (ClusterSample, RunMetric, LifecycleEntry):
        parts.objects.all().delete()
    with monkeypatch.context() as patch:
        patch.setattr(retention, "_delete", fail)
        with pytest.raises(OSError, match="full"):
            retention.drop_executions(NOW, 2)
    assert not DailyUsage.objects.exists()
    whole(retention.drop_executions)
    assert sum(seconds_of_days().values()) == 3600


def test_unsettled_execution_stays_however_old(shop: Shop, configure: Configure) -> None:
    for setting in (EXECUTION_RETENTION, LIFECYCLE_RETENTION, SAMPLE_RETENTION, LOG_RETENTION, METRIC_RETENTION):
        configure(setting, 1)
    ended(shop, 400, settled=False)
    running = shop.launch()
    for name in ("executions", "logs", "metrics", "samples", "lifecycle entries"):
        whole(CHORES[name])
    assert Execution.objects.count() == 2
    assert [model.objects.count() for model in (ExecutionLog, RunMetric, ClusterSample)] == [1, 1, 1]
    assert LifecycleEntry.objects.filter(source="kubernetes").count() == 1
    assert running.lifecycle.count() == 1


def test_a_workspace_stays_until_its_cluster_has_gone(shop: Shop, configure: Configure) -> None:
    configure(EXECUTION_RETENTION, 30)
    workspace, cluster = ended(shop, 40), ended(shop, 29)
    Execution.objects.filter(pk=cluster.pk).update(attached_to=workspace)
    whole(retention.drop_executions)
    assert Execution.objects.count() == 2
    Execution.objects.filter(pk=cluster.pk).update(ended_at=NOW - 31 * DAY)
    whole(retention.drop_executions, at_most=1)
    assert not Execution.objects.exists()
    assert sum(seconds_of_days().values()) == 2 * 3600


def test_execution_with_open_interval_waits_and_delays_no_other(shop: Shop, configure: Configure) -> None:
    configure(EXECUTION_RETENTION, 30)
    waits = ended(shop, 40)
    usage.record(waits.pk, Changes((Interval("open", "open", "node-1", False, NOW - 41 * DAY, None),)))
    ended(shop, 31)
    whole(retention.drop_executions)
    assert Execution.objects.get() == waits
    assert waits.usage.count() == 2
    whole(retention.end_orphan_intervals)
    whole(retention.drop_executions)
    assert not Execution.objects.exists()


def test_records_are_kept_for_ever_without_a_number(shop: Shop, configure: Configure) -> None:
    parts = (LIFECYCLE_RETENTION, SAMPLE_RETENTION, LOG_RETENTION, METRIC_RETENTION)
    for setting in (EXECUTION_RETENTION, AUDIT_RETENTION, *parts):
        configure(setting, 0)
    ended(shop, 10_000)
    AuditEntry.objects.create(at=NOW - 10_000 * DAY, actor_name="ada", action="changed", object_type="x", object_id="y")
    assert whole(CHORES["usage"]) == 1
    assert [whole(chore) for chore in CHORES.values()] == [0] * len(CHORES)
    assert Execution.objects.exists()


@pytest.mark.parametrize(
    ("name", "setting", "parts"),
    [
        ("logs", LOG_RETENTION, ExecutionLog.objects),
        ("metrics", METRIC_RETENTION, RunMetric.objects),
        ("samples", SAMPLE_RETENTION, ClusterSample.objects),
        ("lifecycle entries", LIFECYCLE_RETENTION, LifecycleEntry.objects),
    ],
)
def test_parts_go_by_the_end_of_their_execution(
    shop: Shop, configure: Configure, name: str, setting: Any, parts: Any
) -> None:
    configure(setting, 10)
    old, young, long = ended(shop, 11), ended(shop, 9), ended(shop, 400)
    Execution.objects.filter(pk=long.pk).update(ended_at=NOW - 9 * DAY, settled_at=NOW - 9 * DAY)
    assert whole(CHORES[name], at_most=1) == 1
    kept = parts.filter(source="kubernetes") if name == "lifecycle entries" else parts
    assert set(kept.values_list("execution", flat=True)) == {young.pk, long.pk}
    assert Execution.objects.count() == 3
    assert old.lifecycle.filter(source="state").count() == 1, "what states it had stays"


def test_old_audit_entries_go(shop: Shop, configure: Configure) -> None:
    configure(AUDIT_RETENTION, 10)
    for days in (11, 9):
        at = NOW - days * DAY
        AuditEntry.objects.create(at=at, actor_name="ada", action="changed", object_type="tier", object_id=str(days))
    assert whole(retention.drop_audit_entries) == 0, "not before it is sealed"
    seal(NOW)
    assert whole(retention.drop_audit_entries) == 1
    assert verify().count == 1
    assert AuditEntry.objects.get().object_id == "9"


def granted(execution: Execution, days: int) -> None:
    WorkspaceGrant.objects.create(
        execution=execution, user=execution.owner, session_key="s", ticket_hash=f"t{days}", secret_hash=f"s{days}",
        created_at=NOW - days * DAY,
    )  # fmt: skip


def test_execution_stays_while_a_browser_may_clear_its_data(shop: Shop, configure: Configure) -> None:
    configure(EXECUTION_RETENTION, 1)
    execution = ended(shop, 2)
    granted(execution, days=3)
    assert whole(retention.drop_executions) == 0
    assert purge_grants(NOW + 5 * DAY, 100) == 1
    whole(retention.drop_executions)
    assert not Execution.objects.exists()


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
