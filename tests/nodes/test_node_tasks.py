"""Acting on a node: who may, what the pages say before and after, and what is told meanwhile."""

import pytest
from django.utils import timezone

from dashboard.nodes.pages.node import TASKS
from dashboard.shell.access import Role, assign_role
from grid.core.labels import CORDON_REASON, CORDONED_AT, CORDONED_BY
from grid.kube.resources import DISRUPTION_BUDGETS, NODES, PODS
from grid.models import NodeTask, User
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.executions.executing import make_execution, make_project, pod_of, read_executions
from tests.support import builders
from tests.support.builders import MOMENT, NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

NOTES = {CORDONED_BY: "olga", CORDONED_AT: "2026-03-04T08:50:00+00:00", CORDON_REASON: "Loud <fan>"}
NOW = MOMENT.isoformat()


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


def test_operator_cordons_with_reason_and_page_shows_request(scene: FakeCluster, people: People, auditor: User) -> None:
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


def test_others_read_who_cordoned_and_why(scene: FakeCluster, runtime: Runtime, people: People, auditor: User) -> None:
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


@pytest.fixture
def busy(scene: FakeCluster, runtime: Runtime, people: People) -> FakeCluster:
    """The owner's workspace and a stranger's pod of no execution on n1; a budget that forbids the second's eviction."""
    execution = make_execution(people.owner, make_project(people.owner), title="Churn <by> month")
    scene.put(PODS, pod_of(execution.pk, name=execution.object_name, node="n1", phase="Running", ready=True))
    scene.put(PODS, builders.pod("web-1", node="n1", phase="Running", ready=True, labels={"app": "web"}))
    spec, status = {"selector": {"matchLabels": {"app": "web"}}}, {"disruptionsAllowed": 0, "desiredHealthy": 2}
    scene.put(
        DISRUPTION_BUDGETS, {"metadata": {"name": "keep", "namespace": NAMESPACE}, "spec": spec, "status": status}
    )
    read_executions(runtime)
    fill(runtime, scene)
    return scene


def test_drain_preview_names_pods_owners_and_budgets(busy: FakeCluster, people: People) -> None:
    client = client_of(people.operator)
    page = client.get("/nodes/n1/drain/").text
    assert "It evicts 2 pods of 1 person." in page and "1 eviction must wait for a disruption budget." in page
    assert "Churn &lt;by&gt; month" in page and people.owner.username in page and "Customer churn" in page
    assert "Its owner can resume it on another node" in page
    assert "The PodDisruptionBudget keep allows no eviction now" in page
    busy.forbidden[DISRUPTION_BUDGETS] = "forbidden"
    assert "Not all could be read" in client.get("/nodes/n1/drain/").text


def test_page_follows_drain_and_reports_its_end(busy: FakeCluster, people: People, auditor: User) -> None:
    client = client_of(people.operator)
    assert client.post("/nodes/n1/drain/", {"do": "drain", "reason": ""}).status_code == 422
    page = client.post("/nodes/n1/drain/", {"do": "drain", "reason": "New kernel"}, follow=True).text
    assert "Draining by" in page and "Cancel the drain" in page
    assert "The drain is cancelled" in client.get("/nodes/n1/cordon/").text
    pods = {
        "u1": {"namespace": NAMESPACE, "name": "web-1", "state": "waits", "since": NOW, "why": "A budget says no."},
        "u2": {"namespace": NAMESPACE, "name": "gone-1", "state": "gone", "since": NOW},
    }
    NodeTask.objects.update(progress={"cordoned": True, "pods": pods})
    TASKS.forget()
    reader = client_of(auditor)
    page = reader.get("/nodes/n1/").text
    assert "1 of 2 pods gone." in page and "A budget says no." in page and "Cancel the drain" not in page
    NodeTask.objects.update(ended_at=timezone.now(), outcome="cancelled")
    TASKS.forget()
    assert "The drain was cancelled" in reader.get("/nodes/n1/").text
