"""What operators ask of nodes is recorded and carried out; a drain goes on whatever happens."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from grid.core.errors import ClusterUnavailable, Conflict, NotAllowed, Problem, Rejected
from grid.core.labels import CORDON_REASON, CORDONED_AT, CORDONED_BY
from grid.kube.objects import Node, RawObject
from grid.kube.resources import DISRUPTION_BUDGETS, NODES, PODS
from grid.models import AuditEntry, NodeTask
from grid.nodes import nodetasks
from grid.nodes.draining import PATIENCE, PodProgress, parse_progress
from grid.nodes.nodekeeper import NO_RIGHT, NodeKeeper
from grid.nodes.nodemarks import Mark, fingerprint
from grid.nodes.nodetasks import ask, ask_mark, cordon_of
from tests.conftest import People
from tests.support import builders
from tests.support.builders import NAMESPACE, decode
from tests.support.cluster import FakeCluster
from tests.support.shop import NOW

STATIC = {"kubernetes.io/config.mirror": "x"}


async def database(work: Any, /, *args: Any, **kwargs: Any) -> Any:
    return await sync_to_async(work)(*args, **kwargs)


class Place:
    """A node with three pods, of which one is static, and a controller that can be replaced by the next one."""

    def __init__(self, operator: Any) -> None:
        self.now = NOW
        self.operator = operator
        self.cluster = FakeCluster(clock=lambda: self.now)
        self.cluster.put(NODES, builders.node("n1"))
        self.cluster.put(NODES, builders.node("n2"))
        for name in ("a", "b"):
            self.cluster.put(PODS, builders.pod(name, node="n1", phase="Running", ready=True, labels={"app": name}))
        self.cluster.put(PODS, builders.pod("agent", node="n1", phase="Running", annotations=STATIC))
        self.cluster.put(PODS, builders.pod("done", node="n1", phase="Succeeded"))
        self.cluster.put(PODS, builders.pod("elsewhere", node="n2", phase="Running"))
        self.next_controller()

    def next_controller(self) -> None:
        self.keeper = NodeKeeper(self.cluster, database, lambda: self.now)

    def ask(self, action: str = "drain") -> NodeTask:
        return ask(decode(self.node(), Node), action, by=self.operator, reason="New kernel", now=self.now)

    def step(self, after: float = 2) -> NodeTask:
        self.now += timedelta(seconds=after)
        async_to_sync(self.keeper.run_once)()
        return NodeTask.objects.filter(action="drain").get()

    def node(self) -> RawObject:
        return next(node for node in self.cluster.objects(NODES) if node["metadata"]["name"] == "n1")

    def ending(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.cluster.objects(PODS) if "deletionTimestamp" in pod["metadata"]}

    def gone(self, name: str) -> None:
        self.cluster.remove(PODS, name, namespace=NAMESPACE)

    def budget(self, app: str, allowed: int) -> None:
        status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "observedGeneration": 1}
        spec = {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}
        meta = {"name": f"keep-{app}", "namespace": NAMESPACE, "generation": 1}
        self.cluster.put(DISRUPTION_BUDGETS, {"metadata": meta, "spec": spec, "status": status})

    def evictions(self, name: str) -> int:
        return sum(request.verb == "evict" and request.name == name for request in self.cluster.requests)


@pytest.fixture
def place(people: People) -> Place:
    return Place(people.operator)


def shown(task: NodeTask) -> dict[str, PodProgress]:
    return {pod.name: pod for pod in parse_progress(task.progress["pods"]).values()}


def states(task: NodeTask) -> dict[str, str]:
    return {name: pod.state for name, pod in shown(task).items()}


def test_drain_cordons_and_evicts_until_foreign_pods_are_gone(place: Place) -> None:
    place.ask()
    task = place.step()
    assert place.node()["spec"]["unschedulable"] is True
    assert place.ending() == {"a", "b"}
    assert states(task) == {"a": "ending", "b": "ending"}
    place.gone("a")
    assert states(place.step()) == {"a": "gone", "b": "ending"}
    place.gone("b")
    task = place.step()
    assert (task.outcome, states(task)) == ("done", {"a": "gone", "b": "gone"})
    assert place.cluster.count("delete") == 0
    assert place.evictions("a") == place.evictions("b") == 1
    assert AuditEntry.objects.get().changes == {"drain": ["", "New kernel"]}


def test_disruption_budget_delays_retries_and_is_never_bypassed(place: Place) -> None:
    place.budget("a", 0)
    place.ask()
    task = place.step()
    waiting = shown(task)["a"]
    assert waiting.state == "waits" and "keep-a" in waiting.why and "tried again" in waiting.why
    assert place.ending() == {"b"}
    for _ in range(60):  # five minutes
        task = place.step(5)
    assert 4 <= place.evictions("a") <= 10
    assert shown(task)["a"].since == waiting.since
    assert place.ending() == {"b"}
    place.budget("a", 1)
    place.step(60)
    assert place.ending() == {"a", "b"}


def test_the_next_controller_goes_on_where_one_was_killed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.ask()
    evict = place.cluster.evict

    async def killed(pod: str, **more: Any) -> None:
        await evict(pod, **more)
        raise RuntimeError("killed half-way")

    with monkeypatch.context() as patched:
        patched.setattr(place.cluster, "evict", killed)
        with pytest.raises(RuntimeError):
            place.step()
    assert len(place.ending()) == 1
    (first,) = place.ending()
    place.gone(first)
    place.next_controller()
    assert states(place.step())[first] == "gone"
    assert place.ending() == {"a", "b"} - {first}
    place.gone(*place.ending())
    assert place.step().outcome == "done"


def test_two_controllers_at_once_evict_nothing_twice(place: Place) -> None:
    place.ask()
    place.step()
    place.next_controller()
    place.step()
    assert place.evictions("a") == place.evictions("b") == 1


def test_absent_api_server_is_reported_and_waited_for(place: Place) -> None:
    place.ask()
    place.cluster.available = False
    assert "tries again" in place.step().trouble
    place.cluster.available = True
    place.cluster.fail_next(ClusterUnavailable("The connection to the API server broke."), verb="evict")
    task = place.step()
    assert "broke" in task.trouble and states(task) == {"a": "waits", "b": "waits"}
    task = place.step()
    assert (task.trouble, place.ending()) == ("", {"a", "b"})


def test_pod_that_never_ends_is_reported_and_not_killed(place: Place) -> None:
    place.ask()
    place.step()
    task = place.step(30 + PATIENCE.total_seconds() + 5)
    assert "has not ended though its grace period is over" in shown(task)["a"].why
    assert task.ended_at is None
    assert place.cluster.count("delete") == 0


def test_a_node_that_is_removed_meanwhile_ends_the_drain(place: Place) -> None:
    place.ask()
    place.step()
    place.cluster.remove(NODES, "n1")
    assert place.step().outcome == "gone"


def test_uncordon_cancels_the_drain_even_before_its_start(place: Place) -> None:
    place.budget("a", 0)
    place.ask()
    place.ask("uncordon")
    assert place.step().outcome == "cancelled"
    assert not place.node()["spec"].get("unschedulable")
    assert place.ending() == set()


def test_progress_of_another_release_is_forgotten() -> None:
    assert parse_progress({"u": {"state": "unheard of"}}) == {}
    assert parse_progress(7) == {}


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
    nodetasks.end(NodeTask.objects.get(node_name="n1", ended_at=None), "done", NOW)


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
