"""The first paint of a list that nobody has open: it does not wait until the list is whole, and says how far it is."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from dashboard.executions.pages import executions
from dashboard.executions.pages.execution_rows import MOST_VARIANTS
from dashboard.executions.pages.executions import ExecutionsPage
from dashboard.executions.viewmodels.execution_groups import group_of
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.access import Viewer
from dashboard.shell.pages.feed import current_fragments
from dashboard.shell.pages.lists import FIRST_PAINT_SECONDS, LONGER_SECONDS, REST_SECONDS
from dashboard.shell.pages.slices import Breath
from dashboard.shell.viewmodels.live import Fragment
from grid.kube.resources import PODS
from grid.models import User
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import ROW, make_execution, make_project, pod_of, read_executions
from tests.shell.filling import filled_runtime, slow_filling
from tests.shell.live import connected
from tests.shell.live_changes import ALICE, BOB, OPERATOR, read_page
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.runtime import runtime_of
from tests.support.virtual import loop_time, passes, until, virtual_time, works

COUNT = 8
SLICE = 1.0  # second for each item


async def painted(page: Any, runtime: Runtime, view: Any, viewer: Viewer = OPERATOR) -> Sequence[Fragment]:
    """What a first paint shows; it comes in time."""
    began = loop_time()
    fragments = await current_fragments(page, runtime, viewer, view)
    assert loop_time() - began <= FIRST_PAINT_SECONDS + LONGER_SECONDS + 0.001
    return fragments


def ids(fragments: Sequence[Fragment], region: str = "executions") -> list[str]:
    return [fragment.id for fragment in fragments if fragment.region == region]


def line(fragments: Sequence[Fragment], id: str = "executions-paging") -> str:
    [sentence] = [fragment.context.sentence for fragment in fragments if fragment.id == id]  # type: ignore[attr-defined]
    return str(sentence)


@virtual_time
async def test_first_paint_shows_matches_and_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_filling(monkeypatch, SLICE)
    page, runtime, view = ExecutionsPage(), filled_runtime(COUNT), ExecutionsView()
    first = await painted(page, runtime, view)
    assert line(first) == "Looked at 1 of 8 executions so far and found 1."
    assert len(ids(first)) == 1
    await passes(2.5 * SLICE)
    second = await painted(page, runtime, view)
    assert line(second) == "Looked at 3 of 8 executions so far and found 3."
    assert len(ids(second)) == 3
    assert ids(second) == sorted(ids(second), reverse=True), "the newest is first"
    await passes(20 * SLICE)
    whole = await painted(page, runtime, view)
    assert line(whole) == "8 executions"
    assert len(ids(whole)) == COUNT


@virtual_time
async def test_changes_during_the_filling_are_in_the_whole_list(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_filling(monkeypatch, SLICE)
    page, runtime, view = ExecutionsPage(), filled_runtime(COUNT), ExecutionsView()
    await painted(page, runtime, view)
    gone, *others = runtime.executions.values()
    runtime.executions.replace([*others, replace(gone, id="new", title="New")])
    shown = ids((await read_page(page, runtime, OPERATOR, view))[0])
    assert sorted(shown) == sorted(["row-new", *(f"row-{row.id}" for row in others)])


@virtual_time
async def test_unfinished_list_hides_what_became_inaccessible(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_filling(monkeypatch, SLICE)
    page, runtime, view = ExecutionsPage(), filled_runtime(COUNT), ExecutionsView()
    assert len(ids(await painted(page, runtime, view, BOB))) == 1
    assert line(await painted(page, runtime, view, BOB)) == "Looked at 1 of 8 executions so far and found 1."
    bob_left = [replace(row, project_roles={ALICE.id: "owner"}) for row in runtime.executions.values()]
    runtime.executions.replace(bob_left)
    assert ids(await painted(page, runtime, view, BOB)) == ["executions-none"]
    await passes(20 * SLICE)
    assert line(await painted(page, runtime, view, BOB)) == "0 executions"


@virtual_time
async def test_list_filling_yields_while_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Breath, "is_due", lambda breath: True)
    page, runtime, view = ExecutionsPage(), filled_runtime(COUNT), ExecutionsView()
    await read_page(page, runtime, OPERATOR, ExecutionsView(sort="name"))
    assert loop_time() == 0, "a list that somebody waits for is filled without a rest"
    waiting = asyncio.create_task(read_page(page, runtime, OPERATOR, view))
    await asyncio.sleep(0)
    waiting.cancel()
    assert page._lists is not None
    [filling] = [known for known in page._lists._lists.values() if not known.is_filled]
    await until(lambda: filling.is_filled)
    assert loop_time() > (COUNT - 2) * REST_SECONDS


@virtual_time
async def test_overtaken_list_is_not_called_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    page, runtime, view = ExecutionsPage(), filled_runtime(COUNT), ExecutionsView()
    facts = await page.read(runtime, OPERATOR, view)

    def slowly_made(*given: Any, **known: Any) -> Any:
        works(SLICE)
        return group_of(*given, **known)

    monkeypatch.setattr(executions, "group_of", slowly_made)
    runtime.executions.replace([replace(row, title="New") for row in runtime.executions.values()])
    behind = page.fragments(runtime, OPERATOR, view, facts, runtime.clock())
    assert line(behind) == "Still reading the executions; this list is not complete yet."
    assert line((await read_page(page, runtime, OPERATOR, view))[0]) == "8 executions"


@pytest.mark.django_db(transaction=True)
async def test_websocket_completes_the_page(people: People, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    await sync_to_async(launched)(people, runtime)
    slow_filling(monkeypatch, 0.3)
    page = await answered(people.owner, "/executions/?text=mine")
    assert " of 3 executions so far and found " in page
    assert '<noscript><a href="?text=mine">Reload to see the whole list</a></noscript>' in page
    async with connected("/live/executions/?text=mine", people.owner) as socket:
        message = await socket.message_about("executions-paging")
    assert message.count('id="row-') == 3
    assert "3 executions" in message
    assert "so far" not in message


def launched(people: People, runtime: Runtime) -> None:
    project = make_project(people.owner, people.teammate)
    for number in range(3):
        make_execution(people.owner, project, title=f"Mine {number}")
    read_executions(runtime)


async def answered(user: User, path: str) -> str:
    client = AsyncClient()
    await sync_to_async(client.force_login)(user)
    async with asyncio.timeout(20):
        answer = await client.get(path)
    assert answer.status_code == 200
    return str(answer.content.decode())


@virtual_time
async def test_execution_gone_during_filling_is_neither_shown_nor_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_filling(monkeypatch, 0.05)
    runtime, page, view = filled_runtime(COUNT), ExecutionsPage(), ExecutionsView()
    partial = await page.read_in_time(runtime, OPERATOR, view)
    assert not partial.is_filled
    gone = next(iter(partial.window))
    assert gone.head.row is not None
    runtime.executions.replace([row for row in runtime.executions.values() if row.id != gone.head.row.id])
    await passes(0.04)
    assert not any(
        gone.head.row.id in fragment.id for fragment in page.fragments(runtime, OPERATOR, view, partial, MOMENT)
    )
    whole = await page.read(runtime, OPERATOR, view)
    page.fragments(runtime, OPERATOR, view, whole, MOMENT)
    lists = page.lists_in(runtime)
    assert set(lists.rows._groups) == set(lists.items)


@virtual_time
async def test_rows_do_not_grow_with_tried_filters() -> None:
    page, cluster, count = ExecutionsPage(), FakeCluster(), 3 * MOST_VARIANTS
    for number in range(count):
        cluster.put(PODS, pod_of("c1", name=f"worker-{number}", node=f"node-{number}-", phase="Running", ready=True))
    runtime = runtime_of(cluster, now=MOMENT)
    runtime.executions.replace([replace(ROW, id="c1", kind="cluster", framework="dask", state="running")])
    for number in range(count):
        await read_page(page, runtime, OPERATOR, ExecutionsView(node=f"node-{number}-"))
        await passes(660)  # its list is forgotten
    lists = page.lists_in(runtime)
    assert 1 <= len(lists.rows._groups["c1"]) <= MOST_VARIANTS
    await read_page(page, runtime, OPERATOR, ExecutionsView())
    assert len(lists._filters) <= 2
