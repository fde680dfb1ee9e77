"""What operators ask of nodes is recorded, carried out by the leading controller, and told when it cannot be."""

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

from grid.core.errors import ClusterUnavailable, Conflict, NotAllowed, Problem, Rejected
from grid.core.labels import CORDON_REASON, CORDONED_AT, CORDONED_BY
from grid.kube.objects import Node, RawObject
from grid.kube.resources import NODES
from grid.models import AuditEntry, NodeTask
from grid.nodes import nodetasks
from grid.nodes.nodekeeper import NO_RIGHT, NodeKeeper
from grid.nodes.nodemarks import Mark, fingerprint
from grid.nodes.nodetasks import ask, ask_mark, cordon_of
from tests.conftest import People
from tests.nodes.test_draining import database
from tests.support import builders
from tests.support.builders import decode
from tests.support.cluster import FakeCluster
from tests.support.shop import NOW


def keeper(cluster: FakeCluster) -> NodeKeeper:
    return NodeKeeper(cluster, database, lambda: NOW)


def run_keeper(cluster: FakeCluster) -> None:
    async_to_sync(keeper(cluster).run_once)()


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(NODES, builders.node("n1"))
    return cluster


def node(cluster: FakeCluster) -> RawObject:
    (only,) = cluster.objects(NODES)
    return only


def request(cluster: FakeCluster, people: People, action: str, reason: str = "New kernel") -> NodeTask:
    return ask(decode(node(cluster), Node), action, by=people.operator, reason=reason, now=NOW)


def test_cordon_annotates_node_and_uncordon_removes_it(cluster: FakeCluster, people: People) -> None:
    request(cluster, people, "cordon", "New\0 kernel\n")
    run_keeper(cluster)
    assert node(cluster)["spec"]["unschedulable"] is True
    cordon = cordon_of(decode(node(cluster), Node))
    assert cordon is not None
    assert (cordon.by, cordon.reason, cordon.at) == (people.operator.username, "New kernel", NOW.isoformat())
    request(cluster, people, "uncordon", "")
    run_keeper(cluster)
    assert not node(cluster)["spec"].get("unschedulable")
    assert not {CORDONED_BY, CORDONED_AT, CORDON_REASON} & set(node(cluster)["metadata"].get("annotations", {}))
    assert [task.outcome for task in NodeTask.objects.order_by("pk")] == ["done", "done"]
    assert [entry.changes for entry in AuditEntry.objects.order_by("pk")] == [
        {"cordon": ["", "New kernel"]},
        {"uncordon": ["", ""]},
    ]


def test_action_of_another_leader_is_not_repeated(cluster: FakeCluster, people: People) -> None:
    task = request(cluster, people, "cordon")
    run_keeper(cluster)
    NodeTask.objects.update(ended_at=None, outcome="")  # as if it had been killed before it recorded the end
    run_keeper(cluster)
    assert cluster.count("patch", NODES) == 1
    task.refresh_from_db()
    assert task.outcome == "done"


def test_unresponsive_cluster_is_reported_and_retried(cluster: FakeCluster, people: People) -> None:
    task = request(cluster, people, "cordon")
    cluster.fail_next(ClusterUnavailable("The API server does not answer."))
    run_keeper(cluster)
    task.refresh_from_db()
    assert (task.trouble, task.ended_at) == ("The API server does not answer. The controller tries again.", None)
    cluster.fail_next(NotAllowed("nodes is forbidden"), verb="patch")
    run_keeper(cluster)
    task.refresh_from_db()
    assert task.trouble == NO_RIGHT
    run_keeper(cluster)
    task.refresh_from_db()
    assert (task.trouble, task.outcome) == ("", "done")


def test_missing_node_ends_task_and_namesake_is_left_alone(cluster: FakeCluster, people: People) -> None:
    request(cluster, people, "cordon")
    cluster.remove(NODES, "n1")
    cluster.put(NODES, builders.node("n1", uid="another"))
    run_keeper(cluster)
    assert NodeTask.objects.get().outcome == "gone"
    assert not node(cluster)["spec"].get("unschedulable")


def test_ended_tasks_are_purged_after_a_day(cluster: FakeCluster, people: People) -> None:
    request(cluster, people, "cordon")
    run_keeper(cluster)
    request(cluster, people, "uncordon", "")
    later = NOW + nodetasks.KEPT_FOR + timedelta(seconds=1)
    assert (nodetasks.purge(NOW, 10), nodetasks.purge(later, 10)) == (0, 1)
    assert NodeTask.objects.get().action == "uncordon"


def test_request_without_reason_or_beside_another_is_refused(cluster: FakeCluster, people: People) -> None:
    for action, reason in (("cordon", " \0 "), ("cordon", "x" * 201), ("uncordon", ""), ("delete", "x")):
        with pytest.raises(Rejected):
            request(cluster, people, action, reason)
    request(cluster, people, "cordon")
    with pytest.raises(Rejected, match="still being carried out"):
        request(cluster, people, "cordon")
    assert AuditEntry.objects.count() == 1
    task = NodeTask.objects.get(node_name="n1", ended_at=None)
    nodetasks.end(task, "done", NOW)


def ask_mark_of(cluster: FakeCluster, people: People, mark: Mark) -> NodeTask:
    seen = decode(node(cluster), Node)
    return ask_mark(seen, mark, looked_at=fingerprint(seen), by=people.operator, reason="For team a", now=NOW)


def test_taints_and_labels_are_changed_beside_existing_ones(cluster: FakeCluster, people: People) -> None:
    other = {"key": "example.com/other", "effect": "NoSchedule"}
    cluster.put(NODES, builders.node("n1", labels={"keep": "it"}, taints=[other]))
    ask_mark_of(cluster, people, Mark("taint", "example.com/team", "a", "NoExecute"))
    run_keeper(cluster)
    assert node(cluster)["spec"]["taints"] == [other, {"key": "example.com/team", "value": "a", "effect": "NoExecute"}]
    ask_mark_of(cluster, people, Mark("label", "example.com/team", "a"))
    run_keeper(cluster)
    assert node(cluster)["metadata"]["labels"].items() >= {("keep", "it"), ("example.com/team", "a")}
    ask_mark_of(cluster, people, Mark("untaint", "example.com/team", "a", "NoExecute"))
    run_keeper(cluster)
    ask_mark_of(cluster, people, Mark("unlabel", "example.com/team"))
    run_keeper(cluster)
    assert node(cluster)["spec"]["taints"] == [other]
    assert "example.com/team" not in node(cluster)["metadata"]["labels"]
    assert AuditEntry.objects.order_by("pk")[0].changes == {
        "taint": ["", "example.com/team=a:NoExecute"],
        "reason": ["", "For team a"],
    }


def test_changed_taints_stop_the_task_but_kubelet_reports_not(cluster: FakeCluster, people: People) -> None:
    task = ask_mark_of(cluster, people, Mark("taint", "a", "", "NoSchedule"))
    cluster.put(NODES, {**node(cluster), "spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}})
    run_keeper(cluster)
    task.refresh_from_db()
    assert (task.outcome, node(cluster)["spec"]["taints"]) == ("changed", [{"key": "b", "effect": "NoSchedule"}])
    task = ask_mark_of(cluster, people, Mark("label", "a", "1"))
    cluster.put(NODES, {**node(cluster), "status": {"conditions": []}})
    cluster.fail_next(Conflict("the object has been modified"), verb="patch")
    run_keeper(cluster)
    run_keeper(cluster)
    task.refresh_from_db()
    assert (task.outcome, node(cluster)["metadata"]["labels"]["a"]) == ("done", "1")


def test_api_server_refusal_ends_the_task_with_reason(cluster: FakeCluster, people: People) -> None:
    task = ask_mark_of(cluster, people, Mark("label", "a", "1"))
    cluster.fail_next(Rejected([Problem("", "A webhook said no.")]), verb="patch")
    run_keeper(cluster)
    task.refresh_from_db()
    assert task.outcome == "refused" and "A webhook said no." in task.trouble
