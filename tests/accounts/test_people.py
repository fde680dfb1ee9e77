"""People's accounts as admins see and change them: invitations, roles, links, closed accounts, projects. Who may: tests/access."""

import re

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from dashboard.accounts import people as accounts
from dashboard.shell.access import Role, role_of
from grid.accounts.backend import DEMO_GROUP
from grid.executions.launchrequest import projects_for
from grid.models import AuditEntry, Membership, Project, Session, User
from tests.conftest import People, client_of
from tests.executions.executing import make_execution, make_project
from tests.support.shop import Shop

PASSWORD = "a long and new passphrase"


@pytest.fixture
def admin(people: People) -> Client:
    return client_of(people.admin)


def link_in(page: str) -> str:
    match = re.search(r'id="link">http://[^/]+(/join/[^<]+)<', page)
    assert match, page
    return match[1]


def invite(admin: Client, username: str = "nina", role: str = "practitioner") -> str:
    answer = admin.post("/people/invite/", {"username": username, "role": role})
    assert answer.status_code == 200, answer.content.decode()
    return link_in(answer.content.decode())


def join(client: Client, link: str, password: str = PASSWORD) -> int:
    """Open the link as a browser does, and set the password; return the last status."""
    answer = client.get(link)
    if answer.status_code != 302:
        return answer.status_code
    form = {"new_password1": password, "new_password2": password}
    return client.post(answer["Location"], form).status_code


def history(user: User) -> list[tuple[str, dict[str, list[object]]]]:
    entries = AuditEntry.objects.filter(object_type="user", object_id=str(user.pk)).order_by("id")
    return [(entry.actor_name, entry.changes) for entry in entries]


def test_an_invited_person_joins_and_is_logged_in(admin: Client) -> None:
    link, browser = invite(admin, role="operator"), Client()
    nina = User.objects.get(username="nina")
    assert not nina.has_usable_password()
    assert join(browser, link) == 302
    assert browser.get("/account/").status_code == 200
    nina.refresh_from_db()
    assert role_of(nina) is Role.OPERATOR
    assert nina.check_password(PASSWORD)
    assert history(nina) == [
        ("ada-admin", {"role": [None, "operator"]}),
        ("ada-admin", {"link": ["", "made"]}),
        ("nina", {"state": ["invited", "active"]}),
    ]


def test_invite_token_leaves_the_address_before_a_page_shows(admin: Client) -> None:
    link, browser = invite(admin), Client()
    answer = browser.get(link)
    token = link.strip("/").split("/")[-1]
    assert answer.status_code == 302
    assert token not in answer["Location"]
    page = browser.get(answer["Location"])
    assert token not in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    assert Client().get(answer["Location"]).status_code == 410, "the address alone is worth nothing"


def test_a_link_works_once(admin: Client) -> None:
    link = invite(admin)
    first, second = Client(), Client()
    waiting = second.get(link)["Location"]
    assert join(first, link) == 302
    assert join(Client(), link) == 410
    again = {"new_password1": "another passphrase", "new_password2": "another passphrase"}
    answer = second.post(waiting, again)
    assert answer.status_code == 410
    assert "Ask an admin for a new link." in answer.content.decode()
    assert User.objects.get(username="nina").check_password(PASSWORD)


def test_an_old_link_does_not_work(admin: Client, settings: Settings) -> None:
    link = invite(admin)
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert join(Client(), link) == 410


def test_a_new_invitation_replaces_the_earlier_one(admin: Client) -> None:
    first = invite(admin)
    nina = User.objects.get(username="nina")
    second = link_in(admin.post(f"/people/{nina.pk}/link/").content.decode())
    assert join(Client(), first) == 410
    assert join(Client(), second) == 302


@pytest.mark.parametrize("path", ["/join/x/y/", "/join/MQ/set-password/", "/join/%00/%00/", f"/join/{'9' * 400}/a-b/"])
def test_a_link_that_nobody_made_does_not_work(people: People, path: str) -> None:
    assert Client().get(path).status_code in (404, 410)


def test_password_reset_ends_all_sessions_only_when_used(admin: Client, people: People) -> None:
    there = client_of(people.owner)
    link = link_in(admin.post(f"/people/{people.owner.pk}/link/").content.decode())
    assert there.get("/account/").status_code == 200
    here = Client()
    assert join(here, link) == 302
    assert there.get("/account/").status_code == 302
    assert here.get("/account/").status_code == 200
    assert history(people.owner)[-1] == (people.owner.username, {"password": ["old", "set by link"]})
    hashes = [people.owner.password, User.objects.get(pk=people.owner.pk).password]
    assert not any(password in str(history(people.owner)) for password in hashes)


@pytest.mark.parametrize("name", ["", "a b", "<script>", "x" * 151, "nul\0", "rtl\u202e", "ALICE"])
def test_invalid_user_name_is_refused_at_its_field(admin: Client, people: People, name: str) -> None:
    before = User.objects.count()
    User.objects.filter(pk=people.owner.pk).update(username="alice")
    answer = admin.post("/people/invite/", {"username": name, "role": "practitioner"})
    assert answer.status_code == 400
    assert answer.context["form"].errors.keys() == {"username"}
    assert User.objects.count() == before


def test_a_role_that_is_none_is_refused(admin: Client, people: People) -> None:
    assert admin.post("/people/invite/", {"username": "nina", "role": "root"}).status_code == 400
    assert admin.post(f"/people/{people.owner.pk}/role/", {"role": "root"}).status_code == 400
    assert not User.objects.filter(username="nina").exists()


@pytest.mark.parametrize("role", list(Role))
def test_a_person_has_the_chosen_role_and_no_other(admin: Client, people: People, role: Role) -> None:
    user = people.operator
    user.groups.add(Group.objects.get_or_create(name="auditors")[0], Group.objects.create(name="vision team"))
    admin.post(f"/people/{user.pk}/role/", {"role": role.value})
    user.refresh_from_db()
    assert role_of(user) is role
    assert user.groups.filter(name="vision team").exists(), "other groups are kept"
    changed = [] if role is Role.OPERATOR else [("ada-admin", {"role": ["operator", role.value]})]
    assert history(user) == changed


def test_deactivated_person_is_logged_out_and_keeps_ownership(admin: Client, people: People) -> None:
    there = client_of(people.owner)
    make_execution(people.owner, make_project(people.owner))
    link = link_in(admin.post(f"/people/{people.owner.pk}/link/").content.decode())
    question = admin.get(f"/people/{people.owner.pk}/deactivate/").content.decode()
    assert "1 session ends now" in question
    assert "They stay the owner of Customer churn" in question
    assert admin.post(f"/people/{people.owner.pk}/deactivate/").status_code == 302
    assert there.get("/account/").status_code == 302
    assert not Session.objects.filter(user=people.owner).exists()
    assert join(Client(), link) == 410
    assert admin.post(f"/people/{people.owner.pk}/link/").status_code == 404
    assert people.owner.memberships.exists()
    admin.post(f"/people/{people.owner.pk}/activate/")
    assert there.get("/account/").status_code == 302, "the old session does not come back"
    assert [change for _, change in history(people.owner)][-2:] == [
        {"state": ["active", "deactivated"]},
        {"state": ["deactivated", "active"]},
    ]


def test_nobody_demotes_or_deactivates_oneself(admin: Client, people: People) -> None:
    own = f"/people/{people.admin.pk}/"
    admin.post(f"{own}role/", {"role": "practitioner"})
    answer = admin.post(f"{own}deactivate/", follow=True)
    assert "You cannot deactivate yourself." in answer.content.decode()
    people.admin.refresh_from_db()
    assert role_of(people.admin) is Role.ADMIN
    assert history(people.admin) == []


def test_sessions_are_ended_one_or_all(admin: Client, people: People) -> None:
    for _ in range(3):
        client_of(people.owner)
    path = f"/people/{people.owner.pk}/sessions/end/"
    foreign = Session.objects.get(user=people.admin)
    admin.post(path, {"session": foreign.pk})
    assert Session.objects.filter(pk=foreign.pk).exists()
    admin.post(path, {"session": Session.objects.filter(user=people.owner)[0].pk})
    assert Session.objects.filter(user=people.owner).count() == 2
    admin.post(path)
    assert not Session.objects.filter(user=people.owner).exists()
    assert [change for _, change in history(people.owner)] == [
        {"sessions": ["1 open", "ended"]},
        {"sessions": ["2 open", "ended"]},
    ]


def test_logged_in_person_becomes_the_invited_person(admin: Client, people: People) -> None:
    link = invite(admin)
    assert join(admin, link) == 302
    assert admin.get("/people/").status_code == 403, "nina is no admin"
    assert not Session.objects.filter(user=people.admin).exists()


def test_a_demo_account_joins_from_this_machine_only(admin: Client, people: People, settings: Settings) -> None:
    people.owner.groups.add(Group.objects.get_or_create(name=DEMO_GROUP)[0])
    link = link_in(admin.post(f"/people/{people.owner.pk}/link/").content.decode())
    assert join(Client(), link) == 410
    settings.DEMO = True
    assert join(Client(REMOTE_ADDR="192.0.2.7"), link) == 410
    here = Client(SERVER_NAME="localhost")
    assert join(here, link) == 302


def test_thousands_of_people_are_paged_with_few_queries(
    admin: Client, people: People, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    User.objects.bulk_create(User(username=f"user-{number:04}", password="!x") for number in range(2000))
    admin.get("/people/")
    with django_assert_max_num_queries(11):
        page = admin.get("/people/?page=3").content.decode()
    assert page.count('<th scope="row">') == 50
    assert "101 to 150 of 2,0" in page
    matching = admin.get("/people/?text=USER-1234").content.decode()
    assert matching.count('<th scope="row">') == 1


@pytest.mark.parametrize("query", ["text=%00", "page=-1", "page=9999", "role=root"])
def test_odd_queries_are_answered(admin: Client, query: str) -> None:
    assert admin.get(f"/people/?{query}").status_code == 200


def test_the_list_is_narrowed_by_role_and_state(admin: Client, people: People) -> None:
    User.objects.create_user("closed", is_active=False)
    both = User.objects.create_user("both")
    both.groups.add(*(Group.objects.get_or_create(name=name)[0] for name in ("operators", "auditors")))
    everybody = list(accounts.matching())
    for role in Role:
        assert set(accounts.matching(role=role)) == {
            user for user in everybody if accounts.roles_of([user])[user.pk] is role
        }
    assert [user.username for user in accounts.matching(state="deactivated")] == ["closed"]
    assert both in accounts.matching(state="invited")


@pytest.mark.parametrize(("role", "may"), [(Membership.Role.CONTRIBUTOR, True), (Membership.Role.VIEWER, False)])
def test_contributors_launch_and_viewers_do_not(shop: Shop, role: str, may: bool) -> None:
    shop.project.members.add(shop.people.stranger, through_defaults={"role": role})
    assert projects_for(shop.people.stranger).contains(shop.project) is may
    assert projects_for(shop.people.owner).contains(shop.project)


def test_project_has_one_owner(shop: Shop) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Membership.objects.create(project=shop.project, user=shop.people.stranger, role=Membership.Role.OWNER)


def test_project_is_not_stored_without_its_owner(shop: Shop) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Project.objects.start(id="churn", name="Another of that id", owner=shop.people.stranger)
    assert shop.project.people()["owner"] == "alice"


def test_roles_are_assigned_all_at_once(shop: Shop) -> None:
    people = shop.people
    shop.project.assign(owner=people.stranger, contributors=[people.owner, people.stranger], viewers=[people.owner])
    assert shop.project.people() == {"owner": "charlie", "contributors": ["alice"], "viewers": []}
    shop.project.assign(owner=people.owner, contributors=[], viewers=[people.stranger])
    assert shop.project.people() == {"owner": "alice", "contributors": [], "viewers": ["charlie"]}
