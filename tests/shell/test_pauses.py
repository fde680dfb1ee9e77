"""Nothing that grows with the cluster is done at once on the event loop, or looked at by the garbage collector."""

import gc
import random

import pytest

from dashboard.executions.pages.execution_rows import ExecutionRows
from dashboard.executions.viewmodels.execution_groups import group_of
from dashboard.nodes.viewmodels.nodes import node_sums
from dashboard.shell.viewmodels.window import MERGED_AT_ONCE, OrderedWindow
from grid.core.labels import KEYS
from grid.kube.resources import NODES, PODS
from grid.metrics.usage import Usage
from tests.executions.executing import ROW, pod_of
from tests.support import builders
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.runtime import runtime_of


def test_runs_are_merged_in_steps_into_one_order() -> None:
    window, numbers = OrderedWindow[int](sort_key=lambda number: -number), list(range(3 * MERGED_AT_ONCE))
    random.Random(1).shuffle(numbers)
    for place, number in enumerate(numbers):
        window.append(str(number), number)
        if place % 100 == 99:
            window.end_run()
    assert sum(1 for _ in window.merge_runs()) == 3
    assert list(window.page(1, len(numbers)).items) == sorted(numbers, reverse=True)
    assert window.put("7.5", 7) == len(numbers) - 7


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


def test_pod_data_is_not_tracked_by_garbage_collector() -> None:
    cluster = FakeCluster()
    cluster.put(PODS, pod_of(ROW.id, name="workspace-1-0", node="n1"))
    cluster.put(NODES, builders.node("n1"))
    runtime = runtime_of(cluster, now=MOMENT)
    group = group_of(ROW, list(runtime.pods.values()), KEYS)
    node = node_sums(next(iter(runtime.nodes.values())), runtime.room.requested("n1"), None)
    assert group is not None
    rows = ExecutionRows(runtime).of(group, viewer_id=None, now=MOMENT).fragments
    gc.collect()
    kept = (group, *group.entries, group.entries, Usage(cpu_millicores=1, memory_bytes=1), rows, node, node.requested)
    assert not any(map(gc.is_tracked, kept))
    for row in rows:
        assert not gc.is_tracked(row)
        assert not gc.is_tracked(row.context)
