"""What the first visitors of a process would wait for is begun when all has been read, and kept."""

import asyncio
from dataclasses import replace

import pytest
from django.http import QueryDict

from dashboard.executions.pages.executions import EXECUTIONS
from dashboard.shell.pages import lists as shell_lists
from dashboard.shell.pages.warming import keep_warm
from grid.database import threads as database
from grid.kube.store import Freshness
from grid.runtime import Runtime
from grid.runtime.executions import ActiveExecutions
from tests.executions.executing import ROW
from tests.shell.filling import filled_runtime, slow_filling
from tests.shell.live_changes import OPERATOR
from tests.support.virtual import cancelled, passes, virtual_time

COUNT = 4


async def nothing_stored(*work: object) -> tuple[tuple[()], tuple[()]]:
    return (), ()


@virtual_time
async def test_lists_that_observers_see_first_are_kept_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = filled_runtime(COUNT)
    monkeypatch.setattr(database.pages, "run", nothing_stored)
    monkeypatch.setattr(ActiveExecutions, "are_read", False)
    monkeypatch.setattr(Runtime, "freshness", lambda self: Freshness(True, 0.0, ""))
    executions = EXECUTIONS.lists_in(runtime)
    keeping = asyncio.create_task(keep_warm((EXECUTIONS,), runtime))
    await passes(5)
    assert not executions._lists, "nothing has been read"
    monkeypatch.setattr(ActiveExecutions, "are_read", True)
    await passes(3600)
    runtime.executions.replace([*runtime.executions.values(), replace(ROW, id="new")])
    await passes(3600)
    slow_filling(monkeypatch, 60.0)
    monkeypatch.setattr(shell_lists, "LONGER_SECONDS", 0.0)
    shown = await EXECUTIONS.read_in_time(runtime, OPERATOR, EXECUTIONS.view(QueryDict()))
    assert executions.progress_of(shown) is None
    assert len(shown.window) == COUNT + 1
    await cancelled(keeping)
