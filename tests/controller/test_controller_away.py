"""A controller that has stopped is said on the pages where people wait for it: at once when one is opened, and on an open one."""

import pytest

from grid.models import Execution, State
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
    clock.seconds += 14
    ask_for_lease(runtime)
    shown = page(people.owner, path.format(queued.pk))
    assert "No controller is running" in shown
    assert SENTENCE in shown
