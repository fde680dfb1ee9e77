"""A list that nobody has open is filled with what its page shows first, and makes only what it needs."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from dashboard.executions.pages import executions as executions_pages
from dashboard.executions.pages.executions import ExecutionsPage
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.pages import lists as shell_lists
from dashboard.shell.pages.feed import current_fragments
from dashboard.shell.pages.lists import FIRST_PAINT_SECONDS, LONGER_SECONDS
from dashboard.shell.pages.slices import Breath
from dashboard.shell.viewmodels.live import Fragment
from grid.kube.store import Freshness
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, new_runtime
from grid.runtime.executions import ActiveExecutions
from tests.executions.executing import ROW
from tests.shell.filling import filled_runtime as filled_with, slow_filling
from tests.shell.live import Clock
from tests.shell.live_changes import ALICE, BOB, OPERATOR, apply, read_page
from tests.shell.test_live_lists import changes
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled, loop_time, passes, until, virtual_time

COUNT = 8
SLICE = 1.0  # second for each execution


def filled_runtime(count: int = COUNT) -> Runtime:
    """Executions of Alice, each requested a minute after the one before, and one of Bob, the oldest."""
    runtime = filled_with(count, project_roles={ALICE.id: "owner"})
    at, roles = MOMENT - timedelta(minutes=1), {BOB.id: "owner"}
    bobs = replace(
        ROW, id="bob", owner_id=BOB.id, project_id="p2", project_roles=roles, requested_at=at, state_since=at
    )
    runtime.executions.replace([bobs, *runtime.executions.values()])
    return runtime


def ids(fragments: Sequence[Fragment]) -> list[str]:
    return [fragment.id for fragment in fragments if fragment.region == "executions"]


async def painted(page: ExecutionsPage, runtime: Runtime, viewer: Any = OPERATOR, **view: Any) -> list[str]:
    return ids(await current_fragments(page, runtime, viewer, ExecutionsView(**view)))


@virtual_time
async def test_list_shows_newest_first_while_it_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_filling(monkeypatch, SLICE)
    page, runtime = ExecutionsPage(), filled_runtime()
    assert await painted(page, runtime) == ["row-e7"]
    assert set(page.lists_in(runtime).items) == {"e7"}, "no others have been made"
    await passes(2.5 * SLICE)
    assert await painted(page, runtime) == ["row-e7", "row-e6", "row-e5"]


@virtual_time
async def test_list_of_oldest_shows_these_first(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_filling(monkeypatch, SLICE)
    assert await painted(ExecutionsPage(), filled_runtime(), descending=True) == ["row-bob"]


@virtual_time
async def test_first_paint_waits_a_little_longer_for_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions_pages, "FIRST_LOOKED_AT", 5)
    slow_filling(monkeypatch, 0.03)
    page, runtime = ExecutionsPage(), filled_runtime()
    assert len(await painted(page, runtime)) == 5
    assert loop_time() <= FIRST_PAINT_SECONDS + LONGER_SECONDS


@virtual_time
async def test_ended_executions_are_not_read_before_those_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_filling(monkeypatch, SLICE)
    runtime, now = filled_runtime(), MOMENT + timedelta(hours=2)
    ended = [replace(ROW, id=f"x{number}", state="stopped", ended_at=now, state_since=now) for number in range(COUNT)]
    runtime.executions.replace([*ended, *runtime.executions.values()])
    assert await painted(ExecutionsPage(), runtime) == ["row-e7"]


@virtual_time
async def test_executions_that_are_not_the_newest_come_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions_pages, "FIRST_LOOKED_AT", 2)
    monkeypatch.setattr(executions_pages, "LOOKED_THROUGH_AT_ONCE", 3)
    page, runtime = ExecutionsPage(), filled_runtime()
    fragments, _ = await read_page(page, runtime, OPERATOR, ExecutionsView())
    assert ids(fragments) == [*(f"row-e{number}" for number in reversed(range(COUNT))), "row-bob"]


@virtual_time
async def test_somebodys_list_makes_nobody_elses_executions() -> None:
    page, runtime = ExecutionsPage(), filled_runtime()
    fragments, _ = await read_page(page, runtime, BOB, ExecutionsView())
    assert ids(fragments) == ["row-bob"]
    assert set(page.lists_in(runtime).items) == {"bob"}
    roles = {ALICE.id: "owner", BOB.id: "contributor"}
    runtime.executions.replace([replace(row, project_roles=roles) for row in runtime.executions.values()])
    for viewer in (BOB, OPERATOR):
        assert len(ids((await read_page(page, runtime, viewer, ExecutionsView()))[0])) == COUNT + 1


@virtual_time
async def test_change_in_a_large_project_concerns_only_lists_that_exist() -> None:
    page, runtime = ExecutionsPage(), filled_runtime()
    await read_page(page, runtime, BOB, ExecutionsView())
    roles = dict.fromkeys(range(1_000), "contributor")
    runtime.executions.replace([replace(row, project_roles=roles) for row in runtime.executions.values()])
    await read_page(page, runtime, BOB, ExecutionsView())
    lists = page.lists_in(runtime)
    buckets = set(lists._buckets_of(lists.items["e1"]))
    assert buckets == {"all", ("user", ROW.owner_username), ("project", ROW.project_id), ALICE.id, BOB.id}


@virtual_time
async def test_lists_that_are_filled_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_filling(monkeypatch, 0.02)
    page, runtime = ExecutionsPage(), filled_runtime(400)
    assert len(await painted(page, runtime)) < 20
    assert await painted(page, runtime, BOB) == ["row-bob"], "it does not wait for the other list"
    [of_all] = [known for known in page.lists_in(runtime)._lists.values() if not known.is_filled]
    assert len(of_all.window) < 40


@settings(max_examples=40, deadline=None)
@given(st.lists(changes, max_size=6), st.lists(st.tuples(st.integers(0, 3), changes), min_size=1, max_size=8))
@virtual_time
async def test_list_has_what_changed_while_it_was_filled(before: list[Any], during: list[tuple[int, Any]]) -> None:
    clock = Clock(MOMENT + timedelta(minutes=10))
    runtime = new_runtime({LOCAL: FakeCluster()}, clock=clock.now, monotonic=clock.monotonic)
    views = [
        (OPERATOR, ExecutionsView()),
        (BOB, ExecutionsView(sort="name")),
        (OPERATOR, ExecutionsView(text="worker")),
    ]
    for number, change in enumerate(before):
        apply(runtime, change[0], change[1], number)
    page = ExecutionsPage()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Breath, "is_due", lambda breath: True)
        for viewer, view in views:
            await painted(page, runtime, viewer, sort=view.sort, text=view.text)
        for number, (slices, change) in enumerate(during, start=100):
            await passes(slices * 0.015)
            apply(runtime, change[0], change[1], number)
        lists = page.lists_in(runtime)
        await until(lambda: all(known.is_filled for known in lists._lists.values()))
    for viewer, view in views:
        filled, _ = await read_page(page, runtime, viewer, view)
        assert filled == (await read_page(ExecutionsPage(), runtime, viewer, view))[0], f"{viewer.username} {view}"


@virtual_time
async def test_list_that_observers_see_first_is_kept_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    page, runtime = ExecutionsPage(), filled_runtime()
    runtime.executions.replace([])
    keeping = asyncio.create_task(page.keep_warm(runtime))
    await passes(5)
    assert not page.lists_in(runtime)._lists, "nothing has been read"
    monkeypatch.setattr(Runtime, "freshness", lambda self: Freshness(True, 0.0, ""))
    monkeypatch.setattr(ActiveExecutions, "are_read", True)
    await passes(5)
    runtime.executions.replace([ROW])
    await passes(3600)
    runtime.executions.replace([ROW, replace(ROW, id="e2")])
    await passes(3600)
    monkeypatch.setattr(executions_pages, "FIRST_PAINT_SECONDS", 0.0)
    assert len(await painted(page, runtime)) == 2
    await cancelled(keeping)


@virtual_time
async def test_list_is_kept_for_ten_minutes_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    page, runtime = ExecutionsPage(), filled_runtime()

    async def kept(seconds: float, *texts: str) -> set[str]:
        """Return the lists of these that are left after so many seconds, the first being the one that was seen first."""
        for text in texts:
            await painted(page, runtime, text=text)
            await passes(1.5)
        await passes(seconds)
        await painted(page, runtime, BOB)
        lists: Any = page.lists_in(runtime)._lists
        return {known._view.text for known in lists.values()} & set(texts)

    assert await kept(590, "a", "b") == {"a", "b"}
    assert await kept(610, "a", "b") == set()
    monkeypatch.setattr(shell_lists, "MOST_KEPT_ITEMS", 2 * (COUNT + 1))
    monkeypatch.setattr(shell_lists, "LEAST_KEPT_ITEMS", COUNT + 1)
    assert await kept(25, "c", "d", "e") == {"c", "d", "e"}
    assert await kept(35, "c", "d", "e") == {"d", "e"}, "who was seen longest ago makes room"


def test_filter_is_offered_from_few_executions_of_a_large_project() -> None:
    runtime = filled_runtime(100)
    others = [replace(row, tier_id="large") for row in list(runtime.executions.values())[:50]]
    runtime.executions.replace([*runtime.executions.values(), *others])
    asked = list(executions_pages.rows_to_choose_from(runtime, ALICE))
    assert sorted(row.tier_id for row in asked) == sorted({row.tier_id for row in runtime.executions.values()})
    assert len(asked) == 2
    assert [row.id for row in executions_pages.rows_to_choose_from(runtime, BOB)] == ["bob"]
