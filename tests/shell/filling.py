"""Lists that are filled slowly: the first paint of a page does not wait for them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dashboard.shell.pages.lists import LiveLists
from dashboard.shell.pages.slices import Breath
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, new_runtime
from tests.executions.executing import ROW
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster


def slow_filling(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Make the filling of a list look at one item in that many seconds. Changes are taken in as fast as ever."""

    def rest(lists: LiveLists) -> float:  # type: ignore[type-arg]
        return 0.0 if lists._dirty else seconds

    monkeypatch.setattr(Breath, "is_due", lambda breath: True)
    monkeypatch.setattr(LiveLists, "_rest", rest)


def filled_runtime(count: int, **fields: Any) -> Runtime:
    """Executions with these fields, each requested a minute after the one before, so that the last comes first."""
    runtime = new_runtime({LOCAL: FakeCluster()}, clock=lambda: MOMENT + timedelta(days=9))
    times = [MOMENT + timedelta(minutes=number) for number in range(count)]
    runtime.executions.replace(
        replace(ROW, id=f"e{number}", title=f"Run {number}", requested_at=at, state_since=at, **fields)
        for number, at in enumerate(times)
    )
    return runtime
