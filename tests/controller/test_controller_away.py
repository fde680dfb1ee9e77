"""A controller that has stopped is said on the pages where people wait for it: at once when one is opened, and on an open one."""

import pytest

from dashboard.starts.expected_waits import EXPECTED, ExpectedWaits, WaitsRead
from dashboard.starts.viewmodels.expected_wait import STANDS_STILL
from grid.models import Execution, State
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_execution, make_project, read_executions
from tests.shell.live import Clock
from tests.support.cluster import FakeCluster
from tests.support.runtime import ask_for_lease, renew_lease
from tests.workspaces.workspaces import page

pytestmark = pytest.mark.django_db(transaction=True)
SENTENCE = "Nothing is started, stopped or scaled since 09:00:00 UTC; running programs continue."


@pytest.fixture
def renewed(cluster: FakeCluster, runtime: Runtime) -> None:
    renew_lease(runtime, cluster)


@pytest.fixture
def queued(people: People, runtime: Runtime) -> Execution:
    execution = make_execution(people.owner, make_project(people.owner), state=State.QUEUED)
    read_executions(runtime)
    return execution


@pytest.mark.usefixtures("renewed")
@pytest.mark.parametrize("path", ["/", "/executions/", "/executions/{}/"])
def test_the_pages_say_so_when_they_are_opened(
    people: People, queued: Execution, runtime: Runtime, clock: Clock, path: str
) -> None:
    assert "No controller is running" not in page(people.owner, path.format(queued.pk))
    clock.seconds += 16
    ask_for_lease(runtime)
    shown = page(people.owner, path.format(queued.pk))
    assert "No controller is running" in shown
    assert SENTENCE in shown


@pytest.mark.usefixtures("renewed")
def test_no_start_is_expected_without_a_controller(
    people: People, queued: Execution, runtime: Runtime, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """List, home, page and queue say a time while one leads, and none beside "No controller is running"."""
    known = WaitsRead(runtime.clock(), {queued.pk: WaitEstimate(250.0, 200.0, 300.0)})

    async def value(self: ExpectedWaits, runtime: Runtime) -> WaitsRead:
        return known

    monkeypatch.setattr(ExpectedWaits, "begin", lambda self, runtime: None)
    monkeypatch.setattr(ExpectedWaits, "value", value)
    monkeypatch.setattr(EXPECTED, "latest", known)
    paths = ("/", "/executions/", f"/executions/{queued.pk}/", "/queue/")
    for path in paths:
        assert "bout 4 min" in page(people.owner, path), path
    clock.seconds += 16
    ask_for_lease(runtime)
    for path in paths:
        shown = page(people.owner, path)
        assert "No controller is running" in shown, path
        assert "bout 4 min" not in shown, path
        assert (STANDS_STILL.sentence in shown) == (path not in ("/", "/executions/")), path
