"""Projects as owners and members see them; who leaves opens nothing at once, and what runs there ends later. Who may: tests/access."""

import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from grid.configuration import ACCESS_LOST_TIMEOUT
from grid.controller.controller import Controller
from grid.models import AuditEntry, Execution, Membership, Project, State, User
from grid.models.dataplane import LOCAL
from grid.projects.departures import NOT_CONTRIBUTOR, departed_owners, stop_departed
from tests.clusters.test_cluster_attached import both_running
from tests.clusters.test_cluster_life import left, notes, to_end
from tests.conftest import People, client_of
from tests.controller.world import Killed, World, fresh, in_world, states_of, to_running
from tests.executions.executing import make_project
from tests.platformhealth.test_running import comes_up, in_state, running
from tests.support.shop import OWNER, Shop
from tests.support.virtual import until

Configure = Callable[[Any, int], None]
MEMBERS = "/projects/churn/members/"


def leave(shop: Shop) -> None:
    shop.project.members.remove(shop.people.teammate)


def come_back(shop: Shop) -> None:
    shop.project.members.add(shop.people.teammate, through_defaults={"role": "contributor"})


def close_account(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


@pytest.fixture
def theirs(shop: Shop) -> Execution:
    """Of a member who may leave."""
    return shop.launch(shop.people.teammate)


async def left_while_running(world: World, shop: Shop) -> Controller:
    """The controller of a world whose executions run, before it looks at who has left."""
    controller = world.controller()
    await to_running(world, controller)
    leave(shop)
    return controller


@pytest.mark.django_db
def test_departed_owner_is_asked_about_once_however_much_waits(shop: Shop, django_assert_num_queries: Any) -> None:
    for second in range(3):
        shop.launch(shop.people.teammate, after=second)
    leave(shop)
    with django_assert_num_queries(2):
        (reason,) = departed_owners(LOCAL).values()
    assert reason.code == NOT_CONTRIBUTOR


@pytest.mark.django_db
@pytest.mark.parametrize("number", [1, 4])
def test_losses_are_asked_about_once_until_their_time_is_over(
    shop: Shop, number: int, django_assert_num_queries: Any
) -> None:
    now = timezone.now()
    ids = [shop.launch(shop.people.teammate, after=second).pk for second in range(number)]
    Execution.objects.filter(pk__in=ids).update(state=State.RUNNING, access_lost_at=now)
    leave(shop)
    with django_assert_num_queries(2):
        assert stop_departed(LOCAL, now=now) == []
    assert sorted(stop_departed(LOCAL, now=now + timedelta(minutes=10))) == sorted(ids)


@in_world
async def test_only_executions_of_leaver_end_after_ten_minutes(shop: Shop, theirs: Execution) -> None:
    world, mine = World(), shop.launch()
    controller = await left_while_running(world, shop)
    await world.step(controller)
    noticed = world.now
    assert (fresh(theirs).state, theirs.access_lost_at) == ("running", noticed)
    (line,) = notes(theirs, "AccessLost")
    assert (
        line.words(OWNER) == "bob has left the project Churn. It is stopped in 10 minutes, unless bob is back by then."
    )
    world.passes(599)
    await world.step(controller)
    assert fresh(theirs).stop_requested_at is None
    world.passes(1)
    await to_end(world, world.controller(), theirs)  # another one counts from when the first one noticed
    assert (fresh(mine).state, mine.access_lost_at, mine.stop_requested_at) == ("running", None, None)
    assert (fresh(theirs).state, theirs.reason) == ("stopped", "left_project")
    because = "Compute Grid, because its owner has left the project"
    assert theirs.message == f"Stopped by {because}. The project's files are kept."
    assert [entry.reason for entry in notes(theirs, "left_project")] == ["left_project"] * 2
    assert len(notes(theirs, "AccessLost")) == 1


def test_returning_member_continues_while_another_is_stopped(shop: Shop, theirs: Execution) -> None:
    second = shop.launch(shop.people.teammate)
    leave(shop)

    def back_after_the_first(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        if sql.startswith("UPDATE"):
            come_back(shop)
        return answer

    with connection.execute_wrapper(back_after_the_first):
        (stopped,) = stop_departed(LOCAL, now=timezone.now())
    assert stopped in (theirs.pk, second.pk)


@in_world
async def test_returning_member_loses_nothing_and_restarts_the_waiting_time(shop: Shop, theirs: Execution) -> None:
    world = World()
    controller = world.controller()
    await to_running(world, controller)
    for _ in range(2):
        leave(shop)
        await world.step(controller)
        world.passes(599)
        await world.step(controller)
        come_back(shop)
        await world.step(controller)
        assert fresh(theirs).access_lost_at is None
    assert (theirs.state, theirs.stop_requested_at) == ("running", None)
    assert [entry.words(OWNER) for entry in notes(theirs, "AccessRegained")] == [
        "bob has access to the project Churn again; it continues."
    ] * 2


@in_world
async def test_with_no_time_given_it_ends_at_once(shop: Shop, theirs: Execution, configure: Configure) -> None:
    configure(ACCESS_LOST_TIMEOUT, 0)
    world = World()
    controller = await left_while_running(world, shop)
    await world.step(controller)
    assert fresh(theirs).state == "stopping"
    assert notes(theirs, "AccessLost") == []


@in_world
async def test_queued_execution_of_leaver_ends_unstarted(shop: Shop) -> None:
    world = World()
    workspace = shop.launch(shop.people.teammate, cluster=shop.cluster_request())
    cluster = Execution.objects.get(attached_to=workspace)
    leave(shop)
    await world.step(world.controller())
    assert (states_of(workspace), states_of(cluster)) == (["queued", "stopped"], ["queued", "stopped"])
    assert fresh(workspace).words(OWNER) == (
        "Stopped by Compute Grid before it started, because its owner has left the project."
    )
    assert fresh(cluster).reason == "left_project"
    assert world.pods() == []


@in_world
async def test_attached_cluster_ends_with_workspace_and_lone_one_itself(shop: Shop) -> None:
    world = World()
    workspace = shop.launch(shop.people.teammate, cluster=shop.cluster_request())
    attached = Execution.objects.get(attached_to=workspace)
    lone = shop.launch(shop.people.teammate, kind="cluster", environment=shop.cluster, cluster=shop.cluster_request())
    controller = world.controller()
    await both_running(world, controller, workspace, attached, lone)
    leave(shop)
    await world.step(controller)
    assert all(fresh(execution).access_lost_at for execution in (workspace, attached, lone))
    world.passes(600)
    for execution in (workspace, attached, lone):
        await to_end(world, controller, execution)
    assert (fresh(workspace).reason, fresh(lone).reason) == ("left_project", "left_project")
    assert fresh(attached).words(OWNER).startswith("Stopped with its workspace.")
    assert notes(workspace, "WithoutCluster") == []
    assert left(world) == []


@in_world
async def test_closed_account_ends_executions_and_reopened_keeps_them(shop: Shop) -> None:
    world, kept, lost = World(), shop.launch(), shop.launch(shop.people.teammate)
    controller = world.controller()
    await to_running(world, controller)
    close_account(shop.people.owner)
    close_account(shop.people.teammate)
    await world.step(controller)
    (line,) = notes(lost, "AccessLost")
    assert (
        line.words(OWNER)
        == "The account of bob was closed. It is stopped in 10 minutes, unless that is undone by then."
    )
    User.objects.filter(pk=shop.people.owner.pk).update(is_active=True)
    world.passes(600)
    await world.step(controller)
    assert (fresh(kept).state, fresh(lost).state) == ("running", "stopping")
    assert lost.reason == "account_closed"
    assert lost.words(OWNER).startswith("Compute Grid requested the stop, because its owner's account was closed;")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", range(1, 8))
@in_world
async def test_departure_is_completed_after_a_kill_at_any_call(shop: Shop, call: int, after: bool) -> None:
    world, theirs = World(), shop.launch(shop.people.teammate)
    await to_running(world, world.controller())
    leave(shop)
    await world.step(world.controller())
    world.passes(600)
    killed = world.controller(world.fault)
    world.fault.at, world.fault.after = call, after
    with contextlib.suppress(Killed):
        await world.step(killed)
    await to_end(world, world.controller(), theirs)
    assert (fresh(theirs).state, theirs.reason) == ("stopped", "left_project")
    assert left(world) == []


@in_world
async def test_controller_loop_notices_a_leaver_within_two_seconds(shop: Shop) -> None:
    world, theirs = World(), shop.launch(shop.people.teammate)
    async with running(world):
        await comes_up(world, theirs)
        leave(shop)
        await until(lambda: fresh(theirs).access_lost_at is not None, within=2)
        world.passes(600)
        await until(lambda: in_state(theirs, State.STOPPING), within=2)


@pytest.fixture
def project(people: People) -> Project:
    return make_project(people.owner, people.teammate)


@pytest.fixture
def owner(people: People, project: Project) -> Client:
    return client_of(people.owner)


def test_an_owner_renames_the_project(owner: Client, project: Project) -> None:
    values = {"name": "Retention", "description": "Who stays.", "volume_size": "900Ti", "is_archived": "on", "id": "x"}
    assert owner.post("/projects/churn/settings/", values).status_code == 302
    project.refresh_from_db()
    assert (project.name, project.description) == ("Retention", "Who stays.")
    assert (project.volume_size, project.is_archived) == ("10Gi", False), "what is the admin's is not changed"
    entry = AuditEntry.objects.get(object_type="project")
    assert (entry.actor_name, set(entry.changes)) == ("alice", {"name", "description"})
    assert "Retention" in owner.get("/projects/churn/").content.decode()


@pytest.mark.parametrize("name", ["", "x" * 81, "nul\0"])
def test_a_wrong_name_is_refused_at_its_field(owner: Client, project: Project, name: str) -> None:
    answer = owner.post("/projects/churn/settings/", {"name": name})
    assert answer.status_code == 400
    assert answer.context["form"].errors.keys() == {"name"}
    assert Project.objects.get().name == project.name


def test_an_owner_adds_changes_and_removes_members(owner: Client, people: People, project: Project) -> None:
    owner.post(MEMBERS, {"username": "charlie", "role": "viewer"})
    assert project.people()["viewers"] == ["charlie"]
    owner.post(MEMBERS, {"username": "charlie", "role": "contributor", "confirmed": "on"})
    assert project.people()["contributors"] == ["bob", "charlie"]
    answer = owner.post(MEMBERS, {"username": "charlie", "role": "remove", "confirmed": "on"}, follow=True)
    assert project.people() == {"owner": "alice", "contributors": ["bob"], "viewers": []}
    assert "Their active executions in it are stopped after" in answer.content.decode()
    assert AuditEntry.objects.filter(object_type="project", actor=people.owner).count() == 3
    settings = owner.get("/projects/churn/settings/").content.decode()
    assert "charlie" in settings.split('id="history-title"')[1]


@pytest.mark.parametrize(
    ("username", "role", "sentence"),
    [
        ("alice", "remove", "Only an admin changes the owner."),
        ("<script>", "viewer", "There is no account &lt;script&gt;."),
        ("closed", "viewer", "The account closed is deactivated."),
        ("nul\0", "viewer", "Null characters are not allowed."),
        ("charlie", "owner", "not one of the available choices"),
    ],
)
def test_forbidden_owner_action_changes_nothing(
    owner: Client, project: Project, username: str, role: str, sentence: str
) -> None:
    User.objects.create_user("closed", is_active=False)
    before = project.people()
    answer = owner.post(MEMBERS, {"username": username, "role": role}, follow=True)
    assert sentence in answer.content.decode()
    assert project.people() == before
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("role", ["viewer", "remove"])
def test_existing_member_gets_another_role_only_after_confirmation(owner: Client, project: Project, role: str) -> None:
    answer = owner.post(MEMBERS, {"username": "bob", "role": role})
    assert "bob can no longer launch in the project" in answer.content.decode()
    assert project.people()["contributors"] == ["bob"] and not AuditEntry.objects.exists()
    assert owner.post(MEMBERS, dict(answer.context["question"].fields)).status_code == 302
    assert project.people()["contributors"] == []


@pytest.mark.parametrize("role", ["contributor", "viewer"])
def test_other_members_see_people_and_no_form(people: People, project: Project, role: str) -> None:
    Membership.objects.filter(user=people.teammate).update(role=role)
    page = client_of(people.teammate).get(MEMBERS).content.decode()
    main = page.split("<main")[1].split("</main>")[0]
    assert "alice" in main
    assert "<form" not in main
    assert "History" not in main


def test_list_has_own_projects_with_own_role(people: People, project: Project) -> None:
    Project.objects.start(id="other", name="Other people's", owner=people.stranger)
    Project.objects.start(id="mine", name="Product photos", owner=people.teammate)
    page = client_of(people.teammate).get("/projects/").content.decode()
    assert "Other people" not in page
    assert page.index("Product photos") < page.index("Customer churn"), "those that one owns are first"
    assert "New project" not in page
