"""An execution is settled by the later of two writes: its end, and the freeing of its slots."""

from datetime import timedelta
from itertools import permutations

import pytest
from django.db import IntegrityError, transaction
from pytest_django import DjangoCaptureOnCommitCallbacks

from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER
from grid.executions import ledger, lifecycle
from grid.executions.lifecycle import Transition
from grid.models import ConfigRecord, Execution, State
from grid.models.dataplane import LOCAL
from grid.observability import telemetry
from tests.support.admitting import admit_waiting
from tests.support.shop import NOW, Shop

END, FREE = "end", "free"


def write(execution: Execution, what: str, seconds: int) -> None:
    now = NOW + timedelta(seconds=seconds)
    execution.refresh_from_db()
    change = Transition(State.STOPPED, "stopped", "Stopped.")
    if what == END:
        done = lifecycle.enter(execution.pk, change, revision=execution.revision, left=execution.state, now=now)
    else:
        done = lifecycle.update(execution.pk, {"slots_freed_at": now}, revision=execution.revision, now=now)
    assert done
    execution.refresh_from_db()


@pytest.mark.parametrize("order", list(permutations([END, FREE])))
def test_execution_with_slots_is_settled_by_the_later_write(shop: Shop, order: tuple[str, str]) -> None:
    execution = shop.launch()
    Execution.objects.update(state=State.RUNNING, slots_reserved_at=NOW)
    write(execution, order[0], 1)
    assert execution.settled_at is None
    write(execution, order[1], 2)
    assert execution.settled_at == NOW + timedelta(seconds=2)


def test_single_write_of_end_and_slots_settles_the_execution(shop: Shop) -> None:
    execution = shop.launch()
    Execution.objects.update(state=State.STOPPING, slots_reserved_at=NOW)
    execution.refresh_from_db()
    change = Transition(State.STOPPED, "stopped", "Stopped.")
    fields = {"slots_freed_at": NOW}
    assert lifecycle.enter(execution.pk, change, revision=execution.revision, left="stopping", now=NOW, fields=fields)
    execution.refresh_from_db()
    assert execution.settled_at == NOW


def test_execution_that_never_held_slots_settles_by_its_end(shop: Shop) -> None:
    execution = shop.launch()
    write(execution, END, 1)
    assert execution.settled_at == execution.ended_at


@pytest.mark.parametrize(
    "columns", [{"state": State.RUNNING}, {"state": State.STOPPED, "slots_reserved_at": NOW}], ids=["living", "holding"]
)
def test_database_refuses_to_settle_what_lives_or_holds_slots(shop: Shop, columns: dict[str, object]) -> None:
    shop.launch()
    with pytest.raises(IntegrityError), transaction.atomic():
        Execution.objects.update(settled_at=NOW, **columns)


def test_only_unsettled_executions_count_as_queued_and_holding(shop: Shop) -> None:
    queued, holding, gone = (shop.launch(after=second) for second in range(3))
    Execution.objects.filter(pk=holding.pk).update(state=State.ERROR, slots_reserved_at=NOW)
    write(gone, END, 5)
    assert list(Execution.objects.queued()) == [queued]
    assert list(Execution.objects.holding_slots()) == [holding]
    assert set(Execution.objects.unsettled()) == {queued, holding}


def test_entered_state_is_counted_once_committed(
    shop: Shop, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    execution, name = shop.launch(), "compute_grid_execution_failures_total"
    labels = {"state": "error", "reason": "test_settling"}
    change = Transition(State.ERROR, "test_settling", "It failed.")
    with django_capture_on_commit_callbacks(execute=True) as called:
        lifecycle.enter(execution.pk, change, revision=execution.revision + 1, left=execution.state, now=NOW)
        assert not called
        lifecycle.enter(execution.pk, change, revision=execution.revision, left=execution.state, now=NOW)
        assert telemetry.REGISTRY.get_sample_value(name, labels) is None
    assert telemetry.REGISTRY.get_sample_value(name, labels) == 1


def test_launches_and_admission_results_are_counted_once_per_reason(
    shop: Shop, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    def counted() -> list[float]:
        results = [{"result": result} for result in ("admitted", "deferred", "timed_out")]
        counts = [
            telemetry.REGISTRY.get_sample_value("compute_grid_admissions_total", labels) or 0 for labels in results
        ]
        launches = telemetry.REGISTRY.get_sample_value("compute_grid_launches_total", {"kind": "workspace"}) or 0
        return [launches, *counts]

    def grown(*, after: float = 0) -> list[float]:
        before = counted()
        with django_capture_on_commit_callbacks(execute=True):
            if not after:
                shop.launch()
                shop.launch(after=1)
            admit_waiting(LOCAL, now=NOW + timedelta(seconds=after))
        return [now - then for now, then in zip(counted(), before, strict=True)]

    ConfigRecord.objects.create(key=MAXIMUM_EXECUTIONS_PER_USER.key, value="1")
    assert grown() == [2, 1, 1, 0]
    work = ledger.unsettled_work([LOCAL], now=NOW + timedelta(seconds=31))
    assert work.queue_oldest_seconds == 30
    assert sum(work.counts.values()) == 2
    assert grown(after=10) == [0, 0, 0, 0]
    assert grown(after=1e6) == [0, 0, 0, 1]
    assert ledger.unsettled_work([LOCAL], now=NOW).queue_oldest_seconds == 0
