"""An execution whose pod waits for a node: all pages say the same, name nobody to whom they may not, and follow the nodes."""

from datetime import timedelta

import pytest

from dashboard.executions.viewmodels.execution import Head
from dashboard.executions.viewmodels.node_reasons import node_reasons
from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis, EvidenceRow
from grid.kube.resources import NODES, PODS
from grid.models import Execution, State, User
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.executions.executing import make_execution, make_project, pod_of, put, read_executions
from tests.support.builders import MOMENT, NAMESPACE, condition, node
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden

SENTENCE = "this needs 2 cores"
TABLE = (
    EvidenceRow(3, ("n1", "n2"), "full: 1 core free, but 2 cores needed; taken by <b>", "for_now", MOMENT + timedelta(hours=2)),
    EvidenceRow(1, ("n4",), "too small: has 1 core, but 2 cores needed", "always"),
    EvidenceRow(2, ("n5", "n6"), "cordoned", "decision"),
)  # fmt: skip


@pytest.fixture
def waiting(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    """The owner's, on a pool of one node that a stranger's pod fills but for a core."""
    execution = make_execution(people.owner, make_project(people.owner), state=State.DEPLOYING, node_pool="fast")
    theirs = make_execution(people.stranger, make_project(people.stranger, id="secret"), started_at=MOMENT)
    cluster.put(NODES, node("f1", pool="fast", cpu="4"))
    cluster.put(
        PODS, pod_of(theirs.pk, name=theirs.object_name, node="f1", phase="Running", ready=True, requests={"cpu": "3"})
    )
    unscheduled = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
    spec = {"nodeSelector": {NODE_POOL: "fast"}}
    pod = pod_of(execution.pk, name=execution.object_name, requests={"cpu": "2"}, spec=spec, conditions=[unscheduled])
    put(runtime, cluster, PODS, pod)
    read_executions(runtime)
    return execution


def paths(execution: Execution) -> list[str]:
    pod = f"/pods/{NAMESPACE}/{execution.object_name}/"
    return ["/", "/executions/", f"/executions/{execution.pk}/", pod]


def download(person: User, execution: Execution) -> str:
    return client_of(person).get(f"/executions/{execution.pk}/lifecycle/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_every_page_says_the_same(people: People, waiting: Execution) -> None:
    client = client_of(people.owner)
    for path in paths(waiting):
        assert SENTENCE in client.get(path).content.decode(), path
    assert SENTENCE in download(people.owner, waiting)
    Execution.objects.filter(pk=waiting.pk).update(state="stopped", ended_at=MOMENT, settled_at=MOMENT)
    assert SENTENCE not in download(people.owner, waiting)


@pytest.mark.django_db(transaction=True)
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


def diagnosis(link: str = "infrastructure:fast", table: tuple[EvidenceRow, ...] = TABLE) -> Diagnosis:
    return Diagnosis("busy", "All nodes are full.", "wait", "you", "Wait.", table=table, link=link, is_normal=True)


def test_the_table_looks_like_this() -> None:
    reasons = node_reasons(diagnosis(), sees_all=True)
    head = Head(StatusLine("wait", "Deploying", "All nodes are full."), "Wait.", (), MOMENT, False, reasons)
    html = render_fragment(Fragment("head", "executions/fragments/execution_head.html", head), now=MOMENT)
    assert "&lt;b&gt;" in html
    assert_golden("node-reasons", html)


LINKS = ["infrastructure:a b", "node:../x", "node:n1", "tiers", "executions", "project", ""]


@pytest.mark.parametrize("sees_all", [True, False])
def test_next_step_is_a_page_the_reader_may_open(sees_all: bool) -> None:
    shown = []
    for link in LINKS:
        reasons = node_reasons(diagnosis(link), sees_all=sees_all, project="churn")
        assert reasons is not None
        shown.append(f"{link}: {reasons.link} {reasons.link_word}")
    assert_golden(f"node-reasons-links-{'all' if sees_all else 'own'}", "\n".join(shown), ending="txt")
