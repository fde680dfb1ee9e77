"""The row of a changed pod on an open page."""

from datetime import timedelta
from typing import Any

import pytest

from dashboard.executions.pages.executions import ExecutionsPage
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.access import Viewer
from grid.models.dataplane import LOCAL
from grid.runtime import new_runtime
from tests.shell.live import Clock
from tests.shell.live_changes import ALICE, OPERATOR, apply, read_page
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.virtual import virtual_time

POD = {
    "execution_id": "e0",
    "node": "n0",
    "phase": "Running",
    "ready": True,
    "restarts": 0,
    "waits_for": "",
    "minute": 1,
}


@pytest.mark.parametrize("viewer", [OPERATOR, ALICE])
@pytest.mark.parametrize("kind", ["workspace", "cluster"])
@pytest.mark.parametrize(
    "changed",
    [
        {"restarts": 1},
        {"ready": False},
        {"ready": False, "waits_for": "ImagePullBackOff"},
        {"minute": 2},
        {"node": "n1"},
        {"phase": "Pending", "node": ""},
    ],
)
@virtual_time
async def test_row_of_changed_pod_equals_a_fresh_row(viewer: Viewer, kind: str, changed: dict[str, Any]) -> None:
    clock = Clock(MOMENT + timedelta(minutes=10))
    runtime = new_runtime({LOCAL: FakeCluster()}, clock=clock.now, monotonic=clock.monotonic)
    row = {"kind": kind, "state": "running", "owner": ALICE, "project_id": "p0", "is_shared": False, "minute": 0}
    apply(runtime, "row", {"id": "e0", **row}, 1)
    for number, name in enumerate(["head-c", "worker-a"] if kind == "cluster" else ["worker-a"], start=2):
        apply(runtime, "pod", {**POD, "name": name}, number)
    page, view = ExecutionsPage(), ExecutionsView.parse({})
    before, _ = await read_page(page, runtime, viewer, view)
    apply(runtime, "pod", {**POD, "name": "worker-a", **changed}, 9)
    after, _ = await read_page(page, runtime, viewer, view)
    assert after == (await read_page(ExecutionsPage(), runtime, viewer, view))[0] != before
