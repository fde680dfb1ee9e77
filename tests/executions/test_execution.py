"""One execution's page over HTTP: who may see, stop and keep it, its logs and history, before, while and after it runs."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.executions.views import executions as views
from grid.configuration import WORKSPACE_IDLE, WORKSPACE_LIFETIME
from grid.kube.resources import EVENTS, NODES, PODS
from grid.models import ConfigRecord, Execution, ExecutionLog, LifecycleEntry, State, StopPlan
from grid.runtime import Runtime
from tests.conftest import People, client_of, execution_page as text
from tests.executions.executing import make_execution, make_project, make_running, put, read_executions
from tests.shell.live import Clock, changed, connected
from tests.support.builders import MOMENT, NAMESPACE, container_status, event, node, stamp
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

pytestmark = pytest.mark.django_db(transaction=True)
BUTTON = "Keep it 2 h longer"
EVIDENCE = "no kernel busy, no terminal activity, CPU under 1 %"


@pytest.fixture
def running(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    return make_running(people, cluster, runtime)


def _plain(answer: Any, id: str) -> str:
    """Without what is random, and without the id that was asked for."""
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"|nonce="[^"]+"', "", answer.content.decode()).replace(id, "")


async def test_page_that_another_replica_served_is_followed_at_once(people: People, runtime: Runtime) -> None:
    """It was launched there a moment ago, and nobody has looked here since."""
    execution = await sync_to_async(lambda: make_execution(people.owner, make_project(people.owner)))()
    assert runtime.executions.get(execution.pk) is None
    async with connected(f"/live/execution/?id={execution.pk}", people.owner) as socket:
        assert execution.title in await socket.message()


def test_stranger_gets_the_same_answer_as_for_unknown_id(people: People, running: Execution) -> None:
    client = client_of(people.stranger)
    for path in ("", "log/", "lifecycle/", "stop/"):
        there, not_there = (client.get(f"/executions/{id}/{path}") for id in (running.pk, "neverwas22"))
        assert (there.status_code, not_there.status_code) == (404, 404)
        assert _plain(there, running.pk) == _plain(not_there, "neverwas22")
    assert client.post(f"/executions/{running.pk}/stop/").status_code == 404
    running.refresh_from_db()
    assert running.stop_requested_at is None


@pytest.mark.parametrize(
    ("who", "may_open", "may_stop"),
    [("owner", True, True), ("teammate", False, False), ("operator", False, True), ("admin", False, True)],
)
def test_only_the_owner_opens_and_members_do_not_stop(
    people: People, running: Execution, who: str, may_open: bool, may_stop: bool
) -> None:
    user = getattr(people, who)
    page = text(user, running)
    assert ('form="open-form"' in page) is may_open
    assert (f'href="/executions/{running.pk}/stop/"' in page) is may_stop
    assert client_of(user).get(f"/executions/{running.pk}/stop/").status_code == (200 if may_stop else 403)
    assert client_of(user).post(f"/executions/{running.pk}/stop/").status_code == (302 if may_stop else 403)
    running.refresh_from_db()
    assert (running.stop_requested_at is not None) is may_stop


def test_stopping_asks_first_and_twice_is_once(people: People, running: Execution) -> None:
    client = client_of(people.owner)
    assert "<form" in client.get(f"/executions/{running.pk}/stop/").content.decode()
    running.refresh_from_db()
    assert running.stop_requested_at is None
    answer = client.post(f"/executions/{running.pk}/stop/")
    assert answer["Location"] == f"/executions/{running.pk}/"
    running.refresh_from_db()
    asked = running.stop_requested_at
    client_of(people.admin).post(f"/executions/{running.pk}/stop/")
    running.refresh_from_db()
    assert (running.stop_requested_at, running.stop_requested_by) == (asked, people.owner.username)
    page = text(people.owner, running)
    assert "is stopping" in client.get(answer["Location"]).content.decode()
    assert f"Stop requested by {people.owner.username}." in page
    assert f'href="/executions/{running.pk}/stop/"' not in page


def test_a_foreign_site_cannot_stop(people: People, running: Execution) -> None:
    client = client_of(people.owner, enforce_csrf_checks=True)
    assert client.post(f"/executions/{running.pk}/stop/").status_code == 403


def test_ended_execution_stays_readable_with_log_and_history(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    cluster.remove(PODS, running.object_name, namespace=NAMESPACE)
    fill(runtime, cluster)
    LifecycleEntry.objects.create(
        execution=running, at=MOMENT + timedelta(minutes=9), to_state=State.FAILED, level="Warning",
        reason="OOMKilled", message="It used more memory than its tier has.",
    )  # fmt: skip
    ended = MOMENT - timedelta(days=40)
    Execution.objects.filter(pk=running.pk).update(
        state=State.FAILED, ended_at=ended, settled_at=ended, message="It used more memory."
    )
    ExecutionLog.objects.create(execution=running, text="the end\n")
    read_executions(runtime)
    page = text(people.teammate, running)
    assert "It used more memory." in page
    assert "/live/" not in page
    assert "the end" in text(people.teammate, running, "?tab=log")
    lifecycle = client_of(people.owner).get(f"/executions/{running.pk}/lifecycle/")
    assert "attachment" in lifecycle["Content-Disposition"]
    assert (
        "2026-03-04T09:09:00Z  Warning  Failed: OOMKilled: It used more memory than its tier has."
        in lifecycle.content.decode()
    )


def test_log_is_on_the_page_at_once_and_before_the_history(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    for address in ("", "?tab=events", "?tab=log"):
        page = text(people.teammate, running, address)
        places = [page.index(f'id="{name}"') for name in ("head", "actions", "log", "history-title")]
        assert places == sorted(places)
        assert f'id="{"events" if address == "?tab=events" else "timeline"}"' in page


def test_page_does_not_wait_for_a_late_log(people: People, running: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*unused: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(views, "execution_log_view", never)
    monkeypatch.setattr(views, "_LOG_SECONDS", 0.01)
    page = text(people.owner, running)
    assert "The cluster takes long to send the log." in page
    assert "data-live" in page, "its script asks again"


def test_stored_log_is_shown_before_watch_tells_pod_end(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    cluster.remove(PODS, running.object_name, namespace=NAMESPACE)
    assert "It is gone from the cluster" in text(people.owner, running, "?tab=log")
    Execution.objects.filter(pk=running.pk).update(state=State.SUCCEEDED, ended_at=MOMENT)
    ExecutionLog.objects.create(execution=running, text="the end\n")
    read_executions(runtime)
    assert "the end" in text(people.owner, running, "?tab=log")


@pytest.mark.parametrize("title", ["<script>alert(1)</script>", "</title><h1>"])
def test_any_title_is_shown_as_text(people: People, running: Execution, runtime: Runtime, title: str) -> None:
    Execution.objects.filter(pk=running.pk).update(title=title)
    read_executions(runtime)
    for rest in ("", "stop/", "?tab=log"):
        page = text(people.owner, running, rest)
        assert "<script>alert" not in page
        assert "</title><h1>" not in page


async def test_the_state_and_the_open_button_change_by_themselves(
    people: People, running: Execution, runtime: Runtime
) -> None:
    def becomes(state: State) -> None:
        Execution.objects.filter(pk=running.pk).update(state=state)
        read_executions(runtime)

    await sync_to_async(becomes)(State.PREPARING)
    async with connected(f"/live/execution/?id={running.pk}", people.owner) as socket:
        assert "disabled" in await socket.message()
        await sync_to_async(becomes)(State.RUNNING)
        message = await socket.message()
        assert {"head", "actions", "steps"} <= {target for target, _ in changed(message)}
        assert "disabled" not in message


async def test_new_event_and_lost_node_reach_the_open_page(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    (pod,) = cluster.objects(PODS)
    name = pod["spec"]["nodeName"]
    put(runtime, cluster, NODES, node(name))
    async with connected(f"/live/execution/?id={running.pk}", people.owner) as socket:
        assert f'id="ready-{name}"' in await socket.message()
        put(runtime, cluster, EVENTS, event("e", about=pod, reason="FailedMount", message="no volume <b>"))
        assert "no volume &lt;b&gt;" in await socket.message(within=10)
        put(runtime, cluster, NODES, node(name, ready=False))
        assert (f"ready-{name}", "delete") in changed(await socket.message(within=10))


async def test_open_page_tells_that_the_node_was_deleted(
    people: People, running: Execution, runtime: Runtime, cluster: FakeCluster, clock: Clock
) -> None:
    clock.seconds += 60
    state = {"running": {"startedAt": stamp(MOMENT)}}
    pod = next(each for each in cluster.objects(PODS) if each["metadata"]["name"] == running.object_name)
    pod["status"] |= {"startTime": stamp(MOMENT)}
    pod["status"]["containerStatuses"] = [container_status(ready=True, state=state)]
    cluster.put(PODS, pod)
    put(runtime, cluster, NODES, node("node-a"))
    async with connected(f"/live/execution/?id={running.pk}", people.owner) as socket:
        assert "It is ready: open it." in await socket.message()
        cluster.remove(NODES, "node-a")
        fill(runtime, cluster)
        shown = await socket.message_about("head")
    assert "Node node-a was deleted from the cluster; what ran there is removed soon." in shown
    assert "It is ready" not in shown
    assert "Stop it and launch it again" in shown


@pytest.fixture
def idle(people: People) -> Execution:
    """The team-mate's, in the owner's project; it is announced to be stopped."""
    now = timezone.now()
    started = now - timedelta(hours=5)
    project = make_project(people.owner, people.teammate)
    execution = make_execution(people.teammate, project, title="notebook", started_at=started)
    ConfigRecord.objects.create(key=WORKSPACE_IDLE.key, value="75")
    StopPlan.objects.create(
        execution=execution,
        active_at=now - timedelta(minutes=52),
        looked_at=now,
        evidence=EVIDENCE,
        cause="idle",
        stops_at=now + timedelta(minutes=23),
    )
    return execution


def page(execution: Execution, who: object) -> str:
    shown = client_of(who).get(f"/executions/{execution.pk}/").content.decode()  # type: ignore[arg-type]
    return " ".join(shown.split())


def keep(execution: Execution, who: object, **posted: str) -> str:
    client = client_of(who)  # type: ignore[arg-type]
    answer = client.post(f"/executions/{execution.pk}/keep/", posted, follow=True)
    return answer.content.decode()


def token(execution: Execution) -> str:
    stops_at = StopPlan.objects.get(execution=execution).stops_at
    return stops_at.isoformat() if stops_at else ""


@pytest.mark.usefixtures("runtime")
def test_page_says_idle_time_evidence_and_moment_of_stop(people: People, idle: Execution) -> None:
    since, stops_at = MOMENT - timedelta(minutes=52), MOMENT + timedelta(minutes=23)  # by the pages' clock
    StopPlan.objects.filter(execution=idle).update(active_at=since, stops_at=stops_at)
    shown = page(idle, people.teammate)
    assert ">52 min</time></strong>: no kernel busy, no terminal activity, CPU under 1 %. It stops" in shown
    assert ">in 23 min</time>, at 09:23:00 UTC." in shown
    assert BUTTON in shown


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("who", ["teammate", "owner", "operator"])
def test_its_owner_the_projects_owner_and_operators_keep_it(people: People, idle: Execution, who: str) -> None:
    before = StopPlan.objects.get(execution=idle).stops_at
    assert "notebook is kept until" in keep(idle, getattr(people, who), stops_at=token(idle))
    plan = StopPlan.objects.get(execution=idle)
    assert before is not None
    assert (plan.stops_at, plan.kept_idle_until) == (None, before + timedelta(hours=2))
    shown = page(idle, people.teammate)
    assert BUTTON not in shown
    assert "It stops when idle for 1 h 15 min." in shown


@pytest.mark.usefixtures("runtime")
def test_second_of_two_keepers_is_told_of_the_first(people: People, idle: Execution) -> None:
    seen = token(idle)
    keep(idle, people.teammate, stops_at=seen)
    assert "bob has already kept it, until" in keep(idle, people.owner, stops_at=seen)


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("text", ["", "2026-01-01T00:00:00+00:00", "9999-12-31T23:59:59-12:00"])
def test_a_time_that_was_not_announced_changes_nothing(people: People, idle: Execution, text: str) -> None:
    assert "That stop was withdrawn" in keep(idle, people.teammate, stops_at=text)
    assert StopPlan.objects.get(execution=idle).kept_idle_until is None


@pytest.mark.usefixtures("runtime")
def test_busy_unknown_or_timed_execution_says_so(people: People, idle: Execution) -> None:
    now = timezone.now()
    plans = StopPlan.objects.filter(execution=idle)
    plans.update(cause="", stops_at=None, active_at=now, evidence="1 kernel is busy")
    assert "In use: 1 kernel is busy. It stops when idle for 1 h 15 min." in page(idle, people.teammate)
    plans.update(is_unknown=True, evidence="not known, because its program does not answer")
    assert "Whether it is idle is not known, because its program does not answer." in page(idle, people.teammate)
    ConfigRecord.objects.filter(key=WORKSPACE_IDLE.key).update(value="0")
    ConfigRecord.objects.create(key=WORKSPACE_LIFETIME.key, value="8")
    shown = page(idle, people.teammate)
    assert "Its maximum lifetime of 8 h ends" in shown
    assert "idle" not in shown[shown.index("stop-notice") :][:300].replace("idle-", "")
    plans.update(cause="lifetime", stops_at=now + timedelta(minutes=29))
    assert "Its maximum lifetime of 8 h ends.</strong>" in page(idle, people.teammate)


@pytest.mark.usefixtures("runtime")
def test_project_owner_sets_limits_and_change_is_recorded(people: People) -> None:
    project = make_project(people.owner)
    client = client_of(people.owner)
    values = {"name": "Churn", "description": "", "idle_minutes": "45", "lifetime_hours": ""}
    assert client.post(f"/projects/{project.pk}/settings/", values).status_code == 302
    project.refresh_from_db()
    assert (project.idle_minutes, project.lifetime_hours) == (45, None)
    refused = client.post(f"/projects/{project.pk}/settings/", {**values, "idle_minutes": "0"}).content.decode()
    assert "greater than or equal to 1" in refused
