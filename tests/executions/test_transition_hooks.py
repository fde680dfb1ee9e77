"""Hooks that rooms register on the changes of an execution's state."""

from collections.abc import Iterator

import pytest

from grid.executions import lifecycle
from grid.executions.lifecycle import Entered, Transition
from grid.models import Execution, LifecycleEntry, State
from tests.support.shop import NOW, Shop

CHANGE = Transition(State.RUNNING, "running", "Running.")


@pytest.fixture(autouse=True)
def own_hooks() -> Iterator[None]:
    """Take back what a test registers."""
    on_enter, on_slots_freed = lifecycle._on_enter.copy(), lifecycle._on_slots_freed.copy()
    yield
    lifecycle._on_enter, lifecycle._on_slots_freed = on_enter, on_slots_freed


def enter(execution: Execution) -> bool:
    return lifecycle.enter(execution.pk, CHANGE, revision=execution.revision, left=execution.state, now=NOW)


def test_failing_hook_undoes_the_change(shop: Shop) -> None:
    def fail(entered: Entered) -> None:
        raise RuntimeError("no room")

    lifecycle.on_enter(fail)
    execution = shop.launch()
    entries = LifecycleEntry.objects.count()
    with pytest.raises(RuntimeError, match="no room"):
        enter(execution)
    execution.refresh_from_db()
    assert (execution.state, LifecycleEntry.objects.count()) == (State.QUEUED, entries)


def test_lost_write_calls_no_hook(shop: Shop) -> None:
    seen: list[Entered] = []
    lifecycle.on_enter(seen.append)
    execution = shop.launch()
    execution.revision += 1
    assert not enter(execution)
    assert not seen
