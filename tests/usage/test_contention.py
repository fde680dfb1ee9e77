"""CPU contention and failures on the pages of use: who reads what of it, and what is marked on the charts."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from dashboard.shell.fragments import render_fragment
from dashboard.usage.viewmodels.contention import contended_nodes, short_of_cpu
from dashboard.usage.viewmodels.failure_moments import ContainerEnd, FailureMoment, failures_of, node_failures
from grid.core.labels import KEYS
from grid.kube.hub import Topic
from grid.kube.objects import Event, Node, Pod
from grid.kube.resources import EVENTS, NODES, PODS
from grid.metrics.usage import Measured, Usage
from grid.models import Execution, Job, JobRun, Notification, RunSettings, State
from grid.models.dataplane import LOCAL
from grid.nodes.contention import ROUNDS, Contention, PodCpu
from grid.runtime import Runtime, new_runtime
from grid.runtime.caches import id_of
from grid.runtime.contention import NOTICE_SECONDS, TOPIC, ContentionNotices, ContentionWatch, tell_owners
from tests.conftest import People, client_of
from tests.executions.executing import ROW, make_execution, make_project, pod_of, read_executions
from tests.nodes.test_infrastructure import get, scene
from tests.nodes.test_use_history import KILLED, NOW, USED, connected
from tests.support import builders
from tests.support.builders import MOMENT, NAMESPACE, container_status, decode, stamp
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden
from tests.support.runtime import fill
from tests.support.virtual import virtual_time

TITLE, NOISY = "Churn exploration", "Hyperparameter search"
SHORT = "Other pods on its node use more CPU than they requested"
USED_CORES = {"victim": 950, "noisy": 3000}
__all__ = ["scene"]
LATER = MOMENT + timedelta(minutes=50)


def container(cores: str) -> list[dict[str, Any]]:
    """Without a CPU limit, as of tiers that allow more than they request."""
    return [{"name": "run", "image": "python:3.11", "resources": {"requests": {"cpu": cores}}}]


def measure(runtime: Runtime, at: float, used: dict[str, int] = USED_CORES, own: int = 0) -> None:
    """Measure the pods, and the node with what its own processes use."""
    pods = {f"{NAMESPACE}/{name}": Usage(millicores, 2**30) for name, millicores in used.items()}
    node = {"worker-1": Usage(sum(used.values()) + own, 2**31)}
    runtime.usage.replace(Measured(node, pods, pods_at=dict.fromkeys(pods, at)))
    list(runtime.contention.steps())


def contend(runtime: Runtime, seconds: float = 0) -> None:
    """Measure until there is contention, and once more after so many seconds."""
    started = MOMENT.timestamp()
    for place in range(ROUNDS):
        measure(runtime, started + 15 * place)
    if seconds:
        measure(runtime, started + seconds)


@pytest.fixture
def victim(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    """The owner's workspace with a request of 0.75 cores, and a stranger's job that uses 3 cores of the node's 4 and requested 2."""
    execution = make_execution(
        people.owner, make_project(people.owner, people.teammate), title=TITLE, started_at=MOMENT
    )
    vision = make_project(people.stranger, id="vision", name="Product photos")
    noisy = make_execution(people.stranger, vision, kind="job", title=NOISY, started_at=MOMENT)
    cluster.put(NODES, builders.node("worker-1", cpu="4"))
    running: dict[str, Any] = {"node": "worker-1", "phase": "Running", "ready": True}
    cluster.put(PODS, pod_of(execution.pk, name="victim", containers=container("750m"), **running))
    cluster.put(PODS, pod_of(noisy.pk, name="noisy", containers=container("2"), **running))
    fill(runtime, cluster)
    read_executions(runtime)
    return execution


def page(people: People, person: str, path: str) -> Any:
    return client_of(getattr(people, person)).get(path)


@pytest.mark.parametrize("path", ["/nodes/worker-1/", "/overview/"])
def test_operators_read_who_takes_too_much_on_which_node(
    people: People, victim: Execution, runtime: Runtime, path: str
) -> None:
    assert "CPU contention" not in page(people, "operator", path).text
    contend(runtime)
    text = page(people, "operator", path).text
    assert f"Its pods use 3.95 of 4 cores. “{NOISY}” of charlie uses 3 cores, 1 more than it requested." in text
    assert f"“{TITLE}” of alice may get less than it could use." in text
    assert 'class="bar-used"' in text
    for person in ("owner", "teammate", "stranger"):
        assert page(people, person, path).status_code == 403


def test_owner_of_a_victim_reads_it_without_other_names(people: People, victim: Execution, runtime: Runtime) -> None:
    path = f"/executions/{victim.pk}/"
    assert SHORT not in page(people, "owner", path).text
    contend(runtime)
    text = page(people, "owner", path).text
    assert f"{SHORT}, so it may run slower: it uses 0.95 of the 4 cores that it may use, and requested 0.75." in text
    assert not [word for word in (NOISY, "charlie", "/nodes/worker-1/", "noisy") if word in text]
    assert SHORT not in page(people, "teammate", path).text
    assert page(people, "stranger", path).status_code == 404
    text = page(people, "operator", path).text
    assert SHORT in text
    assert "See which pods of worker-1 use its CPU" in text


def test_noisy_owner_and_ended_execution_read_nothing(people: People, victim: Execution, runtime: Runtime) -> None:
    contend(runtime)
    noisy = Execution.objects.get(title=NOISY)
    text = page(people, "stranger", f"/executions/{noisy.pk}/").text
    assert SHORT not in text
    assert TITLE not in text
    Execution.objects.filter(pk=victim.pk).update(state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT)
    read_executions(runtime)
    assert SHORT not in page(people, "owner", f"/executions/{victim.pk}/").text


def test_findings_stand_through_an_outage_and_begin_anew(victim: Execution, runtime: Runtime) -> None:
    contend(runtime)
    for forget, expected in ((False, {victim.pk}), (True, set[str]())):
        runtime.usage.mark_unavailable("Usage is not being measured.", forget=forget)
        list(runtime.contention.steps())
        assert runtime.contention.victims.keys() == expected
    measure(runtime, MOMENT.timestamp() + 600)
    assert not runtime.contention.worst, "it begins anew"


def test_pages_are_woken_by_news_only(victim: Execution, runtime: Runtime) -> None:
    news: list[Topic] = []
    watch = ContentionWatch(runtime.pods, runtime.nodes, runtime.usage, news.append, execution_of=id_of)
    for place in range(ROUNDS):
        measure(runtime, MOMENT.timestamp() + 15 * place)
        list(watch.steps())
    expected = [TOPIC, (TOPIC, "name", "worker-1"), (TOPIC, "execution", victim.pk)]
    assert news == expected
    list(watch.steps())
    assert news == expected, "the same measurement again"


def test_round_without_measured_pods_reads_none(
    victim: Execution, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    contend(runtime)
    read: list[object] = []

    def noted(*where: object) -> tuple[()]:
        read.append(where)
        return ()

    monkeypatch.setattr(runtime.pods, "items_by", noted)
    for _ in range(2):
        runtime.usage.replace(Measured({}, {}))
        list(runtime.contention.steps())
    assert read == [("node", "worker-1")], "of a node of which something was known"


@virtual_time
async def test_usage_round_is_taken_in_beside_other_work() -> None:
    runtime = new_runtime({LOCAL: FakeCluster()})
    running = asyncio.create_task(runtime.contention.run())
    runtime.nodes.apply(builders.decode(builders.node("worker-1", cpu="4"), Node))
    for name, cores in (("victim", "750m"), ("noisy", "2")):
        pod = builders.pod(name, node="worker-1", phase="Running", containers=container(cores))
        runtime.pods.apply(builders.decode(pod, Pod))
    pods = {f"{NAMESPACE}/{name}": Usage(millicores, 2**30) for name, millicores in USED_CORES.items()}
    for place in range(ROUNDS):
        runtime.usage.replace(Measured({}, pods, pods_at=dict.fromkeys(pods, 15.0 * (place + 1))))
        runtime.contention.measured()
        await asyncio.sleep(1)
    assert [node.node for node in runtime.contention.worst] == ["worker-1"]
    running.cancel()


async def in_thread(function: Any, *arguments: Any, **named: Any) -> Any:
    return await sync_to_async(function)(*arguments, **named)


def notices(runtime: Runtime, run: Any = in_thread) -> ContentionNotices:
    return ContentionNotices(runtime.contention, runtime.executions, run=run, clock=runtime.clock)


def notified() -> list[tuple[str, str]]:
    return list(Notification.objects.filter(event="cpu_contention").values_list("user__username", "path"))


def test_owner_is_told_once_after_some_minutes(people: People, victim: Execution, runtime: Runtime) -> None:
    contend(runtime)
    async_to_sync(notices(runtime).run_once)()
    assert notified() == [], "what is over soon needs nothing from anybody"
    contend(runtime, seconds=NOTICE_SECONDS + 15)
    first, second = notices(runtime), notices(runtime)

    async def both_twice() -> None:
        await asyncio.gather(first.run_once(), second.run_once())
        await first.run_once()

    async_to_sync(both_twice)()
    assert notified() == [("alice", f"/executions/{victim.pk}/")]
    sentence = Notification.objects.get(event="cpu_contention").sentence
    assert sentence.startswith(SHORT)
    assert "charlie" not in sentence


def test_ended_or_unknown_is_not_told_and_sweep_once(people: People, runtime: Runtime) -> None:
    project = make_project(people.owner)
    ended = make_execution(people.owner, project, state=State.SUCCEEDED)
    assert tell_owners({ended.pk: "Short.", "neverwas22": "Short."}, now=MOMENT) == 0
    job = Job.objects.create(
        id="j1", owner=people.owner, project=project, environment=ended.environment, tier=ended.tier
    )
    settings = RunSettings.objects.create(job=job, record={})
    runs = [JobRun.objects.create(job=job, number=number, sweep="1", settings=settings) for number in (1, 2)]
    ids = [make_execution(people.owner, project, kind="job", run=run, attempt=1).pk for run in runs]
    assert tell_owners(dict.fromkeys(ids, "Short."), now=MOMENT) == 2
    assert len(notified()) == 1


FOUND = Contention(
    node="default-7f4k2",
    cores=8000,
    used=7950,
    since=MOMENT.timestamp(),
    until=MOMENT.timestamp() + 300,
    pods=(
        PodCpu("ns/noisy", "e2", 5200, 4000, 8000, "offender"),
        PodCpu("ns/a", "e1", 1050, 1000, 8000, "victim"),
        PodCpu("ns/<b>", "ns/<b>", 1100, 1000, 4000, "victim"),
        *(PodCpu(f"kube-system/own-{number}", "", 100, 100, 8000) for number in range(6)),
    ),
)
ROWS = {"e1": ROW, "e2": replace(ROW, id="e2", title="<i>Search</i>", owner_username="bob")}


def test_the_nodes_and_the_notice_look_as_stored() -> None:
    now = MOMENT + timedelta(minutes=6)
    assert_golden("contention", render_fragment(contended_nodes([FOUND], ROWS.get), now=now))
    assert "1 more node with CPU contention." in render_fragment(contended_nodes([FOUND] * 4, ROWS.get), now=now)
    victim = FOUND, FOUND.victims[0]
    notice = short_of_cpu(victim, "job", is_owner=False, sees_all=True)
    assert_golden("short-of-cpu", render_fragment(notice, now=now))


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
