"""Nothing that grows with the cluster is done at once on the event loop, or looked at by the garbage collector."""

import gc
import random

from dashboard.viewmodels.execution_groups import group_of
from dashboard.viewmodels.window import MERGED_AT_ONCE, OrderedWindow
from grid.kube.objects import Pod
from grid.labels import KEYS
from grid.metrics.usage import Usage
from tests.dashboard.executing import ROW, pod_of
from tests.support.builders import decode


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


def test_what_there_is_for_each_pod_is_not_tracked_by_the_garbage_collector() -> None:
    group = group_of(ROW, [decode(pod_of(ROW.id, name="workspace-1-0"), Pod)], KEYS)
    assert group is not None
    gc.collect()
    kept = (group, *group.entries, group.entries, Usage(cpu_millicores=1, memory_bytes=1))
    assert not any(map(gc.is_tracked, kept))
