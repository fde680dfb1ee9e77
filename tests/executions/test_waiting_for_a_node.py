"""An execution whose pod waits for a node: all pages say the same, name nobody to whom they may not, and follow the nodes."""

import pytest

from grid.core.labels import NODE_POOL
from grid.kube.resources import NODES, PODS
from grid.models import Execution, State, User
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_execution, make_project, pod_of, put, read_executions
from tests.shell.browsing import client_of
from tests.support import builders
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster

pytestmark = pytest.mark.django_db(transaction=True)
SENTENCE = "this needs 2 cores"


@pytest.fixture
def waiting(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    """The owner's, on a pool of one node that a stranger's pod fills but for a core."""
    execution = make_execution(people.owner, make_project(people.owner), state=State.DEPLOYING, node_pool="fast")
    theirs = make_execution(people.stranger, make_project(people.stranger, id="secret"), started_at=MOMENT)
    cluster.put(NODES, builders.node("f1", pool="fast", cpu="4"))
    cluster.put(
        PODS, pod_of(theirs.pk, name=theirs.object_name, node="f1", phase="Running", ready=True, requests={"cpu": "3"})
    )
    unscheduled = builders.condition(
        "PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."
    )
    spec = {"nodeSelector": {NODE_POOL: "fast"}}
    pod = pod_of(execution.pk, name=execution.object_name, requests={"cpu": "2"}, spec=spec, conditions=[unscheduled])
    put(runtime, cluster, PODS, pod)
    read_executions(runtime)
    return execution


def paths(execution: Execution) -> list[str]:
    pod = f"/pods/{builders.NAMESPACE}/{execution.object_name}/"
    return ["/", "/executions/", f"/executions/{execution.pk}/", pod]


def download(person: User, execution: Execution) -> str:
    return client_of(person).get(f"/executions/{execution.pk}/lifecycle/").content.decode()


def test_every_page_says_the_same(people: People, waiting: Execution) -> None:
    client = client_of(people.owner)
    for path in paths(waiting):
        assert SENTENCE in client.get(path).content.decode(), path
    assert SENTENCE in download(people.owner, waiting)
    Execution.objects.filter(pk=waiting.pk).update(state="stopped", ended_at=MOMENT, settled_at=MOMENT)
    assert SENTENCE not in download(people.owner, waiting)


def test_owner_of_pods_on_nodes_is_named_to_operators(people: People, waiting: Execution) -> None:
    taken = "[for now]"
    assert f"taken by a workspace of {people.stranger.username} {taken}" in download(people.operator, waiting)
    assert f"taken by a workspace {taken}" in download(people.owner, waiting)
    for path in paths(waiting)[2:]:
        page = client_of(people.operator).get(path).content.decode()
        assert f"taken by a workspace of {people.stranger.username}" in page
        page = client_of(people.owner).get(path).content.decode()
        assert "taken by a workspace" in page
        assert people.stranger.username not in page
        assert "/infrastructure/?pool=fast" not in page
