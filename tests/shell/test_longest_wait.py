"""No step of the event loop is long while many people open lists that nobody had open. Work on a row takes some virtual time."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dashboard.executions.pages import executions as executions_pages
from dashboard.executions.pages.execution_rows import ExecutionRows
from dashboard.executions.pages.executions import ExecutionList, ExecutionsPage
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.access import Role, Viewer
from dashboard.shell.pages.feed import Feeds, current_fragments
from dashboard.shell.pages.turns import Turns
from dashboard.shell.viewmodels.window import OrderedWindow
from dashboard.starts.expected_waits import EXPECTED
from tests.shell.filling import filled_runtime
from tests.shell.live_changes import OPERATOR
from tests.support.virtual import loop_time, passes, virtual_time, works

COUNT, CHANGED, SOCKETS, ROUNDS = 2_000, 400, 20, 10
LONGEST_SECONDS = 0.02  # a garbage collection adds up to 20 ms, and pages may wait 50
# As measured on a slow machine: of a row that is made, judged by a list, put into its order, and put into words.
MADE, JUDGED, PUT, WORDED = 0.000_1, 0.000_01, 0.000_02, 0.000_15


def costs(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, seconds: float) -> None:
    work: Callable[..., Any] = getattr(owner, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        works(seconds)
        return work(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The virtual seconds that each step of the loop has taken."""
    taken, run = list[float](), asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = loop_time()
        run(handle)
        taken.append(loop_time() - began)

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    monkeypatch.setattr(EXPECTED, "begin", lambda runtime: None)  # it reads the database
    costs(monkeypatch, executions_pages, "group_of", MADE)
    costs(monkeypatch, ExecutionList, "narrowed", JUDGED)
    costs(monkeypatch, OrderedWindow, "put", PUT)
    costs(monkeypatch, OrderedWindow, "append", PUT)
    costs(monkeypatch, ExecutionRows, "_row", WORDED)
    yield taken


@virtual_time
async def test_sockets_that_open_beside_cold_lists_hold_nothing_up(steps: list[float]) -> None:
    roles = dict.fromkeys(range(1_000, 1_000 + SOCKETS), "contributor")
    page, runtime = ExecutionsPage(), filled_runtime(COUNT, project_roles=roles)
    feeds = Feeds(turns=Turns(cpu=loop_time))
    views = [
        (OPERATOR, ExecutionsView(text=f"e{number}"))
        if number % 2
        else (Viewer(1_000 + number, "member", Role.PRACTITIONER), ExecutionsView())
        for number in range(SOCKETS)
    ]

    async def opened(viewer: Viewer, view: ExecutionsView) -> None:
        await current_fragments(page, runtime, viewer, view)
        with feeds.joined(page, runtime, viewer, view) as feed:
            await feed.after(0)
            await passes(ROUNDS)

    async def changed() -> None:
        for number in range(ROUNDS):
            await passes(0.5)
            rows = list(runtime.executions.values())
            new = [replace(row, title=f"Run {number}") for row in rows[:CHANGED]]
            runtime.executions.replace([*new, *rows[CHANGED:]])
            await current_fragments(page, runtime, *views[number])

    async with asyncio.timeout(600), asyncio.TaskGroup() as tasks:
        tasks.create_task(changed())
        for viewer, view in views:
            tasks.create_task(opened(viewer, view))
    assert len(steps) > 1_000
    assert 0.005 < max(steps) <= LONGEST_SECONDS
