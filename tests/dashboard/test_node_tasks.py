"""Acting on a node: who may, what the pages say before and after, and what is told meanwhile."""

import pytest
from django.utils import timezone

from dashboard.access import Role, assign_role
from dashboard.pages.node import TASKS
from grid.kube.resources import NODES
from grid.labels import CORDON_REASON, CORDONED_AT, CORDONED_BY
from grid.models import NodeTask, User
from grid.runtime import Runtime
from tests.conftest import People
from tests.dashboard.browsing import client_of
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

NOTES = {CORDONED_BY: "olga", CORDONED_AT: "2026-03-04T08:50:00+00:00", CORDON_REASON: "Loud <fan>"}


@pytest.fixture
def auditor(db: None) -> User:
    user = User.objects.create_user("audrey")
    assign_role(user, Role.AUDITOR)
    return user


@pytest.fixture
def scene(db: None, cluster: FakeCluster, runtime: Runtime) -> FakeCluster:
    TASKS.forget()
    cluster.put(NODES, builders.node("n1"))
    fill(runtime, cluster)
    return cluster


def test_an_operator_cordons_with_a_reason_and_the_page_says_that_it_is_asked_for(
    scene: FakeCluster, people: People, auditor: User
) -> None:
    client = client_of(people.operator)
    assert 'href="/nodes/n1/cordon/"' in client.get("/nodes/n1/").text
    assert "No new pod is placed on the node" in client.get("/nodes/n1/cordon/").text
    refused = client.post("/nodes/n1/cordon/", {"do": "cordon", "reason": ""})
    assert refused.status_code == 422 and "Say why" in refused.text
    page = client.post("/nodes/n1/cordon/", {"do": "cordon", "reason": "Loud <fan>"}, follow=True).text
    assert "Cordon requested by" in page and "Loud &lt;fan&gt;" in page
    assert "still being carried out" in client.post("/nodes/n1/cordon/", {"do": "cordon", "reason": "x"}).text
    NodeTask.objects.update(trouble="The API server does not answer.", asked_at=timezone.now())
    TASKS.forget()
    auditors = client_of(auditor).get("/nodes/n1/").text
    assert "The API server does not answer." in auditors
    assert "/nodes/n1/cordon/" not in auditors


def test_who_may_not_act_is_refused_whether_the_node_exists_or_not(
    scene: FakeCluster, people: People, auditor: User
) -> None:
    for person in (auditor, people.owner):
        for name in ("n1", "no-such"):
            assert client_of(person).post(f"/nodes/{name}/cordon/", {"do": "cordon", "reason": "x"}).status_code == 403
    assert client_of(people.operator).get("/nodes/no-such/cordon/").status_code == 404
    assert not NodeTask.objects.exists()


def test_others_read_who_cordoned_it_and_why(
    scene: FakeCluster, runtime: Runtime, people: People, auditor: User
) -> None:
    scene.put(NODES, builders.node("n1", unschedulable=True, annotations=NOTES))
    scene.put(NODES, builders.node("n2", unschedulable=True, annotations={CORDONED_BY: "x", CORDONED_AT: "soon"}))
    scene.put(NODES, builders.node("n3", unschedulable=True))
    fill(runtime, scene)
    reader = client_of(auditor)
    page = reader.get("/nodes/n1/").text
    assert "Cordoned: no new pod is placed here." in page and "olga" in page and "Loud &lt;fan&gt;" in page
    assert reader.get("/nodes/n2/").status_code == 200
    assert "who did it and why is not known here" in reader.get("/nodes/n3/").text
    assert "New pods may be placed on the node again." in client_of(people.operator).get("/nodes/n1/cordon/").text
