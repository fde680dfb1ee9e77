"""What was shown once and is not looked at any more costs no memory."""

from dataclasses import replace

from dashboard.executions.pages.execution_rows import MOST_VARIANTS
from dashboard.executions.pages.executions import ExecutionsPage
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from grid.kube.resources import PODS
from tests.executions.executing import ROW, pod_of
from tests.shell.live_changes import OPERATOR, read_page
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.runtime import runtime_of
from tests.support.virtual import passes, virtual_time


@virtual_time
async def test_rows_do_not_grow_with_tried_filters() -> None:
    page, cluster, count = ExecutionsPage(), FakeCluster(), 3 * MOST_VARIANTS
    for number in range(count):
        cluster.put(PODS, pod_of("c1", name=f"worker-{number}", node=f"node-{number}-", phase="Running", ready=True))
    runtime = runtime_of(cluster, now=MOMENT)
    runtime.executions.replace([replace(ROW, id="c1", kind="cluster", framework="dask", state="running")])
    for number in range(count):
        await read_page(page, runtime, OPERATOR, ExecutionsView(node=f"node-{number}-"))
        await passes(60)  # its list is forgotten
    lists = page.lists_in(runtime)
    assert 1 <= len(lists.rows._groups["c1"]) <= MOST_VARIANTS
    await read_page(page, runtime, OPERATOR, ExecutionsView())
    assert len(lists._filters) <= 2
