"""Projects as their owners manage and their members see them. Who may open them: tests/access."""

import pytest
from django.test import Client

from grid.models import AuditEntry, Membership, Project, User
from tests.conftest import People
from tests.executions.executing import make_project
from tests.shell.browsing import client_of

MEMBERS = "/projects/churn/members/"


@pytest.fixture
def project(people: People) -> Project:
    return make_project(people.owner, people.teammate)


@pytest.fixture
def owner(people: People, project: Project) -> Client:
    return client_of(people.owner)


def test_an_owner_renames_the_project(owner: Client, project: Project) -> None:
    values = {"name": "Retention", "description": "Who stays.", "volume_size": "900Ti", "is_archived": "on", "id": "x"}
    assert owner.post("/projects/churn/", values).status_code == 302
    project.refresh_from_db()
    assert (project.name, project.description) == ("Retention", "Who stays.")
    assert (project.volume_size, project.is_archived) == ("10Gi", False), "what is the admin's is not changed"
    entry = AuditEntry.objects.get(object_type="project")
    assert (entry.actor_name, set(entry.changes)) == ("alice", {"name", "description"})
    assert "Retention" in owner.get("/projects/churn/").content.decode()


@pytest.mark.parametrize("name", ["", "x" * 81, "nul\0"])
def test_a_wrong_name_is_refused_at_its_field(owner: Client, project: Project, name: str) -> None:
    answer = owner.post("/projects/churn/", {"name": name})
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
    assert "charlie" in answer.content.decode().split('id="history-title"')[1]


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
    page = client_of(people.teammate).get("/projects/churn/").content.decode()
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
