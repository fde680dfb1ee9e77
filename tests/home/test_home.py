"""Home: each execution as its other pages say, live; its side with slots, what may be launched again and projects; the first steps."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.template.loader import render_to_string

from dashboard.home.records import read_home
from dashboard.home.viewmodels.first_steps import SetupFacts, WorkFacts, setup_steps, work_steps
from grid.kube.objects import RawObject
from grid.kube.resources import PODS
from grid.models import Environment, Execution, HardwareTier, Project, State, User, WorkspaceGrant
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.executions.executing import (
    make_environment,
    make_execution,
    make_project,
    make_running,
    make_tier,
    pod_of,
    read_executions,
)
from tests.shell.live import connected
from tests.support.builders import MOMENT, container_status
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden
from tests.support.runtime import fill
from tests.workspaces.workspaces import page

CRASHES = "The program keeps crashing (4 restarts)"
_AGAIN = container_status(
    restarts=4,
    state={"waiting": {"reason": "CrashLoopBackOff"}},
    lastState={"terminated": {"exitCode": 1, "finishedAt": "2026-03-04T08:59:00Z"}},
)
NEW = WorkFacts("", has_launched=False, has_opened=False, has_ended=False)
EMPTY = SetupFacts(has_tier=False, has_environment=False, has_project=False, has_people=False)


def crashing(execution: Execution) -> RawObject:
    return pod_of(execution.pk, name=execution.object_name, node="node-a", phase="Running", statuses=[_AGAIN])


@pytest.mark.django_db(transaction=True)
def test_a_crash_loop_is_told_as_everywhere_else(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    execution = make_execution(people.owner, make_project(people.owner), started_at=MOMENT)
    cluster.put(PODS, crashing(execution))
    fill(runtime, cluster)
    read_executions(runtime)
    for path in ("/", "/executions/", f"/executions/{execution.pk}/"):
        shown = page(people.owner, path)
        assert CRASHES in shown, path
        assert re.search(r'status-problem"[^>]*>Running', shown), path
        assert "See the end of the log." in shown, path


@pytest.mark.django_db(transaction=True)
async def test_home_follows_the_pods_of_what_one_runs(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    execution = await sync_to_async(make_running)(people, cluster, runtime)
    async with connected("/live/home/", people.owner) as socket:
        assert CRASHES not in await socket.message()
        cluster.put(PODS, crashing(execution))
        fill(runtime, cluster)
        await socket.message_about(CRASHES, within=4)  # which is before the next look without a change


def ticked(facts: WorkFacts) -> str:
    """One letter for each step: d(one), n(ext), or a dash."""
    return "".join("d" if step.is_done else "n" if step.is_next else "-" for step in work_steps(facts).steps)


def test_steps_are_ticked_one_after_the_other() -> None:
    facts = NEW
    assert ticked(facts) == "n---"
    facts = replace(facts, project="Churn")
    assert ticked(facts) == "dn--"
    facts = replace(facts, has_launched=True)
    assert ticked(facts) == "ddn-"
    facts = replace(facts, has_opened=True)
    assert ticked(facts) == "dddn"
    assert not work_steps(facts).is_done
    assert work_steps(replace(facts, has_ended=True)).is_done


def test_setup_is_done_when_nothing_is_missing() -> None:
    steps = setup_steps(replace(EMPTY, has_tier=True)).steps
    assert [step.is_next for step in steps] == [False, True, False, False]
    full = SetupFacts(has_tier=True, has_environment=True, has_project=True, has_people=True)
    assert setup_steps(full).is_done
    assert not setup_steps(replace(full, has_people=False)).is_done


def test_first_steps_look_as_stored() -> None:
    facts = WorkFacts("Churn <b>", has_launched=True, has_opened=False, has_ended=False)
    assert_golden("first-steps-launched", render_to_string("home/fragments/first_steps.html", {"x": work_steps(facts)}))


def shown(client: Any) -> str:
    """The title of the card on Home, "" without one."""
    page: str = client.get("/").content.decode()
    return page.partition('<h2 id="first-steps-')[2].partition(">")[2].partition("<")[0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
class TestHome:
    def test_card_stays_until_first_stop_and_never_returns(self, people: People) -> None:
        client = client_of(people.stranger)
        assert shown(client) == "First steps"
        project = make_project(people.stranger, name="Maps")
        assert "You can launch in Maps." in client.get("/").content.decode()
        execution = make_execution(people.stranger, project)
        assert shown(client) == "First steps"
        WorkspaceGrant.objects.create(
            execution=execution, user=people.stranger, session_key="s", ticket_hash="t", secret_hash="h"
        )
        assert client.get("/").content.decode().count("(done)") == 3
        Execution.objects.filter(pk=execution.pk).update(state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT)
        assert shown(client) == ""
        execution.lifecycle.all().delete()
        WorkspaceGrant.objects.all().delete()
        execution.delete()
        assert shown(client) == ""

    def test_hidden_card_stays_hidden_and_another_browser_shows_it(self, people: People) -> None:
        client = client_of(people.stranger)
        answer = client.post("/first-steps/hide/", {"card": "work", "next": "/"})
        assert answer["Location"] == "/"
        assert shown(client) == ""
        assert shown(client_of(people.stranger)) == "First steps"

    @pytest.mark.parametrize("card", ["", "nonsense", "setup"])
    def test_only_the_named_card_is_hidden(self, people: People, card: str) -> None:
        client = client_of(people.stranger)
        client.post("/first-steps/hide/", {"card": card, "next": "//elsewhere.test/"})
        assert shown(client) == "First steps"

    def test_admin_of_empty_installation_sees_setup_first(self, people: People) -> None:
        client = client_of(people.admin)
        assert shown(client) == "Set the grid up"
        make_tier()
        make_environment()
        assert shown(client) == "Set the grid up"
        make_project(people.owner)
        assert shown(client) == "First steps"
        for model in (Project, Environment, HardwareTier):
            model.objects.all().delete()
        assert shown(client) == "First steps"  # its setup was done once

    def test_setup_is_hidden_from_others_and_auditors_skip_launching(self, people: People) -> None:
        assert shown(client_of(people.operator)) == "First steps"
        assert shown(client_of(people.owner)) == "First steps"
        auditor = User.objects.create_user(username="otto-auditor")
        auditor.groups.create(name="auditors")
        assert shown(client_of(auditor)) == ""


@pytest.mark.usefixtures("runtime")
@pytest.mark.django_db(transaction=True)
def test_running_slots_and_queued_slots_are_distinguished(people: People, runtime: Runtime) -> None:
    project = make_project(people.owner)
    make_execution(people.owner, project, slots=3)
    make_execution(people.owner, project, state=State.QUEUED, slots=2)
    make_execution(people.teammate, project, slots=9)
    read_executions(runtime)
    home = client_of(people.owner).get("/").content.decode()
    assert "You use 3 of 25 slots. 2 more wait in the queue." in home
    assert "12 % of your slots are in use" in home


@pytest.mark.usefixtures("runtime")
@pytest.mark.django_db(transaction=True)
def test_similar_launches_are_offered_once_with_latest_first(people: People) -> None:
    project = make_project(people.owner)
    notebook = make_environment("notebook", name="Notebook")
    first = make_execution(people.owner, project, title="a <b>", environment=notebook)
    again = make_execution(
        people.owner, project, title="a <b>", environment=notebook, requested_at=MOMENT + timedelta(hours=1)
    )
    latest = make_execution(people.owner, project, requested_at=MOMENT + timedelta(hours=2))
    make_execution(people.teammate, project, title="not mine", requested_at=MOMENT + timedelta(hours=3))

    launches = read_home(people.owner.pk, 9).launches
    assert [(launch.id, launch.title) for launch in launches] == [(latest.pk, ""), (again.pk, "a <b>")]
    home = client_of(people.owner).get("/").content.decode()
    assert f'href="/launch/?from={again.pk}">a &lt;b&gt;</a>' in home
    assert first.pk not in home.partition("Launch again")[2].partition("Projects")[0]


@pytest.mark.usefixtures("runtime")
@pytest.mark.django_db(transaction=True)
def test_own_projects_are_listed_without_archived_ones(people: People) -> None:
    make_project(people.admin, people.owner, id="shared", name="Shared")
    old = make_project(people.owner, id="old", name="Old")
    old.is_archived = True
    old.save()
    assert [(project.name, project.role) for project in read_home(people.owner.pk, 1).projects] == [
        ("Shared", "contributor")
    ]
    assert read_home(people.stranger.pk, 1).projects == ()
