"""Home says of each execution what the Executions page and its own page say, in its present state and as that changes."""

import re

import pytest
from asgiref.sync import sync_to_async

from grid.kube.objects import RawObject
from grid.kube.resources import PODS
from grid.models import Execution
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_execution, make_project, make_running, pod_of, read_executions
from tests.shell.live import connected
from tests.support.builders import MOMENT, container_status
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill
from tests.workspaces.workspaces import page

pytestmark = pytest.mark.django_db(transaction=True)
CRASHES = "The program keeps crashing (4 restarts)"
_AGAIN = container_status(
    restarts=4,
    state={"waiting": {"reason": "CrashLoopBackOff"}},
    lastState={"terminated": {"exitCode": 1, "finishedAt": "2026-03-04T08:59:00Z"}},
)


def crashing(execution: Execution) -> RawObject:
    return pod_of(execution.pk, name=execution.object_name, node="node-a", phase="Running", statuses=[_AGAIN])


def test_a_crash_loop_is_told_as_everywhere_else(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    execution = make_execution(people.owner, make_project(people.owner), started_at=MOMENT)
    cluster.put(PODS, crashing(execution))
    fill(runtime, cluster)
    read_executions(runtime)
    for path in ("/", "/executions/", f"/executions/{execution.pk}/"):
        shown = page(people.owner, path)
        assert CRASHES in shown, path
        assert re.search(r'status-problem"[^>]*>Running', shown), path
        assert "See the end of the log." in shown, path


async def test_home_follows_the_pods_of_what_one_runs(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    execution = await sync_to_async(make_running)(people, cluster, runtime)
    async with connected("/live/home/", people.owner) as socket:
        assert CRASHES not in await socket.message()
        cluster.put(PODS, crashing(execution))
        fill(runtime, cluster)
        await socket.message_about(CRASHES, within=4)  # which is before the next look without a change
