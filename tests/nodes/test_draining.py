"""A drain goes on whatever happens: budgets, a killed controller, a node that is gone, a pod that never ends, no API server."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from grid.core.errors import ClusterUnavailable
from grid.kube.objects import Node, RawObject
from grid.kube.resources import DISRUPTION_BUDGETS, NODES, PODS
from grid.models import AuditEntry, NodeTask
from grid.nodes.draining import PATIENCE, PodProgress, parse_progress
from grid.nodes.nodekeeper import NodeKeeper
from grid.nodes.nodetasks import ask
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
    task = place.step()
    assert states(task)[first] == "gone"
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
