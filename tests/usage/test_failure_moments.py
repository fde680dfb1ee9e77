"""What is marked on the charts of use: what failed on a node, in a pod or in an execution, and where to read what was near it."""

from datetime import timedelta
from typing import Any

from dashboard.usage.viewmodels.failure_moments import ContainerEnd, FailureMoment, failures_of, node_failures
from grid.core.labels import KEYS
from grid.kube.objects import Event, Node, Pod
from grid.kube.resources import EVENTS, PODS
from grid.models import Execution, State
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.nodes.test_infrastructure import get, scene
from tests.nodes.test_use_history import KILLED, NOW, USED, connected
from tests.support import builders
from tests.support.builders import MOMENT, NAMESPACE, container_status, decode, stamp
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

__all__ = ["scene"]
LATER = MOMENT + timedelta(minutes=50)


def link(pod: Pod, end: ContainerEnd | None) -> str:
    return f"{pod.metadata.name} {end and (end.name, end.is_previous)}"


def test_eviction_is_marked_and_good_end_is_not() -> None:
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": stamp(MOMENT)}}
    good = decode(builders.pod("good", statuses=[container_status(state=ended)]), Pod)
    status = {"reason": "Evicted", "message": "The node was low on resource: memory.", "phase": "Failed"}
    evicted = decode(builders.pod("bad", node="n1", status=status), Pod)
    words = "bad was evicted: The node was low on resource: memory."
    assert failures_of([good, evicted], link) == [FailureMoment(MOMENT, words, "bad None")]


def condition(kind: str, status: str, minutes: int) -> dict[str, str]:
    since = stamp(MOMENT + timedelta(minutes=minutes))
    return {"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": since}


def node_event(name: str, reason: str, minutes: int) -> Event:
    about = builders.node("n1")
    at = MOMENT + timedelta(minutes=minutes)
    return decode(builders.event(name, about=about, reason=reason, message="Why.", at=at), Event)


def test_node_troubles_are_marked_once_and_daily_life_not() -> None:
    conditions = [condition("Ready", "Unknown", 10), condition("DiskPressure", "True", 5)]
    conditions += [condition("MemoryPressure", "False", 6)]
    node = decode(builders.node("n1", conditions=conditions), Node)
    events = [node_event("e1", "NodeReady", 1), node_event("e2", "SystemOOM", 2)]
    assert [(moment.words, moment.url) for moment in node_failures(node, events, "/nodes/n1/")] == [
        ("SystemOOM: Why.", "/nodes/n1/#event-default.e2"),
        ("The node has DiskPressure: R", "/nodes/n1/#events"),
        ("The node is not ready: R", "/nodes/n1/#events"),
    ]
    lost = node_failures(node, [node_event("e3", "NodeNotReady", 11)], "")
    assert [moment.words for moment in lost] == ["The node has DiskPressure: R", "NodeNotReady: Why."]
    earlier = node_failures(node, [node_event("e3", "NodeNotReady", -60)], "")
    assert earlier[-1].words == "The node is not ready: R", "the event is of an earlier time"
    assert node_failures(None, [], "") == []


def marks(people: People, person: str = "operator", range: str = "1h") -> list[str]:
    answer = get(people, person, f"/nodes/worker-1/use/?range={range}")
    return [event["words"] for event in answer.json()["events"]]


def test_node_charts_are_marked_by_events_pods_and_records(
    people: People, scene: FakeCluster, runtime: Runtime
) -> None:
    def failed(name: str, minutes: float, **columns: object) -> Execution:
        """Before now, by the scene's clock."""
        at = runtime.clock() - timedelta(minutes=minutes)
        settled: dict[str, Any] = {"state": State.ERROR, "ended_at": at, "settled_at": at, "node_name": "worker-1"}
        settled |= columns
        return make_execution(people.owner, project, title=name, started_at=MOMENT, message="The node went.", **settled)

    project = make_project(people.owner)
    gone, there = failed("gone", 10), failed("there", 9)
    failed("elsewhere", 8, node_name="worker-2")
    failed("good", 7, state=State.SUCCEEDED)
    failed("long ago", 90)
    labels = {KEYS.execution: there.pk}
    status = container_status(state=KILLED)
    scene.put(PODS, builders.pod(there.object_name, node="worker-1", labels=labels, statuses=[status]))
    about = builders.node("worker-1")
    scene.put(EVENTS, builders.event("e9", about=about, reason="NodeNotReady", message="Gone.", at=LATER))
    fill(runtime, scene)
    connected(runtime, {NOW: USED})
    pods = f"run of {there.object_name} ended: OOMKilled, exit code 137"
    assert sorted(marks(people)) == sorted(["gone failed: The node went.", pods, "NodeNotReady: Gone."])
    assert "long ago failed: The node went." in marks(people, range="6h")
    text = get(people, "operator", "/nodes/worker-1/").content.decode()
    assert f'<a href="/executions/{gone.pk}/#timeline">gone failed: The node went.</a>' in text
    assert f'<a href="/pods/{NAMESPACE}/{there.object_name}/#events">{pods}</a>' in text
    event = "event-default.e9"
    assert f'<a href="/nodes/worker-1/#{event}">NodeNotReady: Gone.</a>' in text and f'id="{event}"' in text
