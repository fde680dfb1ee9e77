"""A page on which time alone changes something is looked at again soon; any other rests until something is changed."""

import asyncio

import pytest

from dashboard.access import Role, Viewer
from dashboard.pages.execution_lists import ExecutionList
from dashboard.pages.executions import ExecutionsPage
from dashboard.pages.feed import Feeds
from dashboard.viewmodels.executions_view import ExecutionsView
from grid.kube.objects import RawObject
from grid.kube.resources import PODS
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, new_runtime
from tests.dashboard.executing import pod_of
from tests.support.builders import container_status
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill
from tests.support.virtual import loop_time, virtual_time

OPERATOR = Viewer(id=1, username="olga", role=Role.OPERATOR)
RESTING = pod_of("e1", name="run-e1", node="n1", phase="Running", ready=True)
RESTARTED = RESTING | {"status": RESTING["status"] | {"containerStatuses": [container_status(ready=True, restarts=1)]}}


class Counted(ExecutionsPage):
    looks = 0

    async def read(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView) -> ExecutionList:
        self.looks += 1
        return await super().read(runtime, viewer, view)


async def looks_in_a_minute(pod: RawObject, view: ExecutionsView) -> int:
    page, cluster = Counted(), FakeCluster()
    cluster.put(PODS, pod)
    runtime = new_runtime({LOCAL: cluster}, monotonic=loop_time)
    fill(runtime, cluster)
    with Feeds().joined(page, runtime, OPERATOR, view):
        await asyncio.sleep(1)
        before = page.looks
        await asyncio.sleep(60)
    return page.looks - before


@virtual_time
async def test_a_page_of_pods_that_run_well_is_looked_at_every_twenty_seconds() -> None:
    assert await looks_in_a_minute(RESTING, ExecutionsView()) == 3


@pytest.mark.parametrize(
    ("pod", "view"),
    [(RESTARTED, ExecutionsView()), (RESTING, ExecutionsView(age="1 d")), (RESTING, ExecutionsView(text="x"))],
)
@virtual_time
async def test_a_page_whose_words_or_rows_change_with_time_is_looked_at_every_five_seconds(
    pod: RawObject, view: ExecutionsView
) -> None:
    assert await looks_in_a_minute(pod, view) == 12


@virtual_time
async def test_a_page_that_rests_shows_a_change_at_once() -> None:
    page, cluster = ExecutionsPage(), FakeCluster()
    cluster.put(PODS, RESTING)
    runtime = new_runtime({LOCAL: cluster}, monotonic=loop_time)
    fill(runtime, cluster)
    with Feeds().joined(page, runtime, OPERATOR, ExecutionsView()) as feed:
        await asyncio.sleep(45)
        version, began = feed.version, loop_time()
        cluster.put(PODS, RESTARTED)
        fill(runtime, cluster)
        await feed.after(version)
        assert loop_time() - began < 0.1
