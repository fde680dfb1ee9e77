"""A controller that has stopped is said on the pages where people wait for it: at once when one is opened, and on an open one."""

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from grid.kube.resources import LEASES
from grid.launch.leader import LEASE
from grid.models import Execution, State
from grid.runtime import Runtime
from tests.conftest import People
from tests.dashboard.executing import make_execution, make_project, read_executions
from tests.dashboard.live import Clock, connected
from tests.dashboard.workspaces import page
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster

pytestmark = pytest.mark.django_db(transaction=True)
SENTENCE = "Nothing is started, stopped or scaled since 09:00:00 UTC; programs that run go on."


@pytest.fixture
def renewed(cluster: FakeCluster, runtime: Runtime) -> None:
    """A controller has just renewed its lease, and the page's process has seen that."""
    spec = {"holderIdentity": "a", "renewTime": "2026-03-04T09:00:00.000000Z"}
    cluster.put(LEASES, {"metadata": {"name": LEASE, "namespace": NAMESPACE}, "spec": spec})
    ask(runtime)


def ask(runtime: Runtime) -> None:
    (plane,) = runtime.data_planes.values()
    async_to_sync(plane.controller.ask)()


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
    clock.seconds += 14
    ask(runtime)
    shown = page(people.owner, path.format(queued.pk))
    assert "No controller is running" in shown
    assert SENTENCE in shown


@pytest.mark.usefixtures("renewed")
async def test_an_open_page_says_so_by_itself(
    people: People, queued: Execution, runtime: Runtime, clock: Clock
) -> None:
    async with connected(f"/live/execution/?id={queued.pk}", people.owner) as socket:
        assert "No controller is running" not in await socket.message()
        clock.seconds += 14
        await sync_to_async(ask)(runtime)
        assert SENTENCE in await socket.message_about("No controller is running", within=4)
