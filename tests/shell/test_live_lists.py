"""Lists that are kept up to date by changes are those that one would make anew, keep what has not changed, and wake who looks."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec
import pytest
from django.template import Context, Template
from django.utils import timezone
from hypothesis import given, settings, strategies as st

from dashboard.executions.pages import executions as executions_pages
from dashboard.executions.pages.executions import ExecutionsPage
from dashboard.executions.viewmodels.execution_groups import ExecutionLine, group_of
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.nodes.pages.infrastructure import InfrastructurePage
from dashboard.nodes.viewmodels.infrastructure import InfrastructureView
from dashboard.shell.access import Viewer
from dashboard.shell.fragments import render_fragment
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.periodic import PeriodicRead
from dashboard.shell.tags import kept
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from dashboard.shell.viewmodels.window import OrderedWindow
from grid.kube.hub import Subscription
from grid.kube.objects import Node
from grid.models.dataplane import LOCAL
from grid.runtime import new_runtime
from grid.runtime.executionrows import ExecutionRow
from tests.executions.executing import ROW
from tests.shell.live import Clock
from tests.shell.live_changes import ALICE, BOB, OPERATOR, apply, read_page, rules
from tests.support import builders
from tests.support.builders import MOMENT, decode
from tests.support.cluster import FakeCluster
from tests.support.virtual import passes, virtual_time

EXECUTION_VIEWS: tuple[tuple[Viewer, dict[str, str]], ...] = (
    (OPERATOR, {}),
    (OPERATOR, {"sort": "-restarts", "page": "2"}),
    (OPERATOR, {"status": "trouble"}),
    (OPERATOR, {"user": "bob", "sort": "node"}),
    (OPERATOR, {"project": "p1", "text": "worker"}),
    (ALICE, {}),
    (BOB, {"kind": "cluster", "sort": "cpu"}),
    (OPERATOR, {"age": "12 min"}),
    (OPERATOR, {"age": "12 min", "status": "trouble"}),
)
NODE_VIEWS: tuple[dict[str, str], ...] = (
    {},
    {"sort": "-cpu"},
    {"pool": "gpu"},
    {"state": "trouble"},
    {"text": "n1"},
    {"state": "removable"},
)
ids = st.sampled_from(["e0", "e1", "e2", "e3"])
pods = st.fixed_dictionaries(
    {
        "execution_id": ids,
        "name": st.sampled_from(["worker-a", "worker-b", "head-c", "run-d", "run-e"]),
        "node": st.sampled_from(["", "n0", "n1"]),
        "phase": st.sampled_from(["Pending", "Running", "Succeeded"]),
        "ready": st.booleans(),
        "restarts": st.integers(0, 2),
        "waits_for": st.sampled_from(["", "CrashLoopBackOff", "ImagePullBackOff"]),
        "minute": st.integers(0, 12),
    }
)
rows = st.fixed_dictionaries(
    {
        "id": ids,
        "kind": st.sampled_from(["workspace", "cluster"]),
        "state": st.sampled_from(["queued", "running", "stopped"]),
        "owner": st.sampled_from([ALICE, BOB]),
        "project_id": st.sampled_from(["p0", "p1"]),
        "is_shared": st.booleans(),
        "minute": st.integers(0, 3),
    }
)
changes = st.one_of(
    st.tuples(st.just("pod"), pods),
    st.tuples(st.just("pod gone"), st.sampled_from(["worker-a", "worker-b", "head-c", "run-d", "run-e"])),
    st.tuples(st.just("row"), rows),
    st.tuples(st.just("row gone"), ids),
    st.tuples(st.just("event"), st.sampled_from(["worker-a", "run-d"])),
    st.tuples(
        st.just("node"),
        st.tuples(st.sampled_from(["n0", "n1", "n2"]), st.sampled_from(["gpu", "cpu", ""]), st.booleans()),
    ),
    st.tuples(st.just("node gone"), st.sampled_from(["n0", "n1", "n2"])),
    st.tuples(st.just("usage"), st.integers(1, 9)),
)
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
LINE = ExecutionLine(
    id="row", shape="single", execution_id="e1", name="<b>", kind="Workspace", tier="Small", user="ann", project="Demand",
    status=StatusLine("ok", "Running", "Well."), advice="", since=NOW, restarts="0", cpu="2", memory="8 GiB", gpus="",
)  # fmt: skip


async def is_woken(subscription: Subscription) -> bool:
    try:
        async with asyncio.timeout(1):
            await subscription.changed()
    except TimeoutError:
        return False
    return True


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([6, 120]), st.lists(changes, min_size=1, max_size=4)), max_size=8))
@virtual_time
async def test_updated_list_is_fresh_and_wakes_viewers(batches: list[tuple[int, list[tuple[str, Any]]]]) -> None:
    clock = Clock(MOMENT + timedelta(minutes=10))
    runtime = new_runtime({LOCAL: FakeCluster()}, clock=clock.now, monotonic=clock.monotonic)
    answers = PeriodicRead(rules, clock=timezone.now)
    kept_executions, kept_nodes = ExecutionsPage(), InfrastructurePage(answers)
    looking: list[tuple[LivePage[Any, Any], Callable[[], LivePage[Any, Any]], Viewer, Any]] = [
        *((kept_executions, ExecutionsPage, viewer, ExecutionsView.parse(query)) for viewer, query in EXECUTION_VIEWS),
        *(
            (kept_nodes, lambda: InfrastructurePage(answers), OPERATOR, InfrastructureView.parse(query))
            for query in NODE_VIEWS
        ),
    ]
    shown = {}
    number = 0
    for index, (page, _, viewer, view) in enumerate(looking):
        shown[index] = await read_page(page, runtime, viewer, view)
    for seconds, batch in batches:
        clock.seconds += seconds
        for index, (page, anew, viewer, view) in enumerate(looking):
            shown[index] = await read_page(page, runtime, viewer, view)
            assert shown[index][0] == (await read_page(anew(), runtime, viewer, view))[0], f"{view} after {seconds} s"
        subscriptions = {index: runtime.hub.subscribe(topics) for index, (_, topics) in shown.items()}
        for subscription in subscriptions.values():
            subscription.__enter__()
        for what, change in batch:
            number += 1
            apply(runtime, what, change, number)
        for index, (page, anew, viewer, view) in enumerate(looking):
            before = shown[index][0]
            shown[index] = await read_page(page, runtime, viewer, view)
            expected, _ = await read_page(anew(), runtime, viewer, view)
            assert shown[index][0] == expected
            assert before == expected or await is_woken(subscriptions[index]), f"{view} changed and nobody was woken"
        for subscription in subscriptions.values():
            subscription.__exit__(None, None, None)


class Item:
    def __init__(self, rank: int, height: int) -> None:
        self.rank, self.height = rank, height


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.tuples(st.integers(0, 3), st.integers(1, 3)))),
    st.booleans(),
    st.integers(1, 6),
)
def test_window_is_sorted_and_reports_first_difference(
    puts: list[tuple[str, tuple[int, int] | None]], is_reversed: bool, per_page: int
) -> None:
    window: OrderedWindow[Item] = OrderedWindow(
        sort_key=lambda item: item.rank, is_reversed=is_reversed, height=lambda item: item.height
    )
    items: dict[str, Item] = {}

    def expected() -> list[Item]:
        return [items[key] for _, key in sorted(((item.rank, key) for key, item in items.items()), reverse=is_reversed)]

    for key, given_item in puts:
        before = expected()
        item = None if given_item is None else Item(*given_item)
        first = window.put(key, item)
        items.pop(key, None)
        if item is not None:
            items[key] = item
        after = expected()
        assert before[:first] == after[:first]
        assert window.rows == sum(kept.height for kept in after)
        assert read_by_pages(window, per_page) == after  # each time, because pages are kept between changes


def read_by_pages(window: OrderedWindow[Item], per_page: int) -> list[Item]:
    read: list[Item] = []
    for number in count(1):
        page = window.page(number, per_page)
        assert page.before == len(read)
        assert len(page.items) <= 1 or sum(item.height for item in page.items) <= per_page
        read += page.items
        if not page.has_next:
            assert window.page(number + 5, per_page) == page
            break
    return read


@virtual_time
async def test_failed_change_is_retried(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    runtime = new_runtime({LOCAL: FakeCluster()})
    runtime.executions.replace([ROW, replace(ROW, id="e2")])
    page, view = ExecutionsPage(), ExecutionsView()
    await read_page(page, runtime, OPERATOR, view)
    made = group_of

    def broken(row: ExecutionRow, *arguments: Any, **options: Any) -> Any:
        if row.id == "e1":
            raise ZeroDivisionError
        return made(row, *arguments, **options)

    monkeypatch.setattr(executions_pages, "group_of", broken)
    runtime.executions.replace([replace(ROW, title="New"), replace(ROW, id="e2", title="Newer")])

    async def titles() -> set[str]:
        fragments, _ = await read_page(page, runtime, OPERATOR, view)
        return {fragment.context.name for fragment in fragments if isinstance(fragment.context, ExecutionLine)}

    assert await titles() == {"workspace-e1", "Newer"}
    monkeypatch.undo()
    await passes(4)
    assert await titles() == {"New", "Newer"}
    assert "ZeroDivisionError" in caplog.text


@virtual_time
async def test_failing_listener_withholds_no_change_from_others(caplog: pytest.LogCaptureFixture) -> None:
    runtime, heard = new_runtime({LOCAL: FakeCluster()}), list[str]()

    def fails(old: object, new: object) -> None:
        raise ZeroDivisionError

    runtime.nodes.subscribe(fails)
    runtime.nodes.subscribe(lambda old, new: heard.append("node"))
    runtime.executions.subscribe(fails)
    runtime.executions.subscribe(lambda old, new: heard.append("execution"))
    runtime.nodes.apply(decode(builders.node("n0"), Node))
    runtime.executions.replace([ROW])
    assert heard == ["node", "execution"]
    assert caplog.text.count("ZeroDivisionError") >= 2


@pytest.mark.parametrize("is_reversed", [False, True])
def test_page_of_unmerged_runs_is_in_order(is_reversed: bool) -> None:
    window, numbers = OrderedWindow[int](sort_key=lambda number: number, is_reversed=is_reversed), list(range(90))
    random.Random(1).shuffle(numbers)
    for place, number in enumerate(numbers):
        window.append(str(number), number)
        if place % 10 == 9:
            window.end_run()
    expected = sorted(numbers, reverse=is_reversed)
    assert list(window.page(2, 20).items) == expected[20:40]
    merging = window.merge_runs()
    next(merging)
    assert list(window.page(2, 20).items) == expected[20:40]


@dataclass(frozen=True)
class Row:
    name: str
    tier: str
    state: str = "queued"


def part_of(template: Template) -> kept.Kept:
    return next(node for node in template.nodelist if isinstance(node, kept.Kept))


def row_html(line: ExecutionLine) -> str:
    return render_fragment(Fragment(line.id, "executions/fragments/execution_row.html", line), now=NOW)


def test_part_is_rerendered_only_when_its_field_changes() -> None:
    template = Template('{% load kept %}{% kept "name tier" %}{{ x.name }}{% endkept %}')
    rows = (Row("a", "s"), Row("a", "s", "running"), Row("<b>", "s"))
    assert [template.render(Context({"x": x})) for x in rows] == ["a", "a", "&lt;b&gt;"]
    assert len(part_of(template).known) == 2


@pytest.mark.parametrize("field", [field for field in ExecutionLine.__struct_fields__ if field != "shape"])
def test_a_row_of_which_one_field_changed_shows_it(field: str) -> None:
    full = msgspec.structs.replace(
        LINE, used_cpu="1", used_memory="1 GiB", node="n1", pod_namespace="grid", pod_name="p1"
    )
    changed = {"status": StatusLine("wait", "Queued"), "since": None, "node_is_link": True}
    was = getattr(full, field)
    new = msgspec.structs.replace(full, **{field: changed.get(field, was + 1 if isinstance(was, int) else f"{was}x")})
    html = row_html(full)
    assert row_html(new) != html
    assert row_html(full) == html
