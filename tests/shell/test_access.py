"""Who may see and do what, role by role, and the pages that everybody meets first."""

from dataclasses import dataclass

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from dashboard.shell.access import (
    GROUPS,
    Role,
    Viewer,
    admin_required,
    may_administer,
    may_manage_workspace,
    may_observe,
    may_operate,
    may_read_execution,
    may_see_execution,
    role_of,
    viewer_in,
    viewer_of,
    viewers_of,
)
from grid.accounts.sessions import valid_users
from tests.accounts.test_sessions import in_session, key_of
from tests.conftest import People, client_of


@dataclass(frozen=True)
class Row:
    owner_id: int
    project_member_ids: frozenset[int]


def test_each_person_has_one_role(people: People) -> None:
    assert role_of(people.admin) is Role.ADMIN
    assert role_of(people.operator) is Role.OPERATOR
    assert role_of(people.owner) is Role.PRACTITIONER
    assert role_of(AnonymousUser()) is Role.PRACTITIONER


def test_highest_role_of_several_groups_counts(people: People) -> None:
    groups = {name: Group.objects.get_or_create(name=name)[0] for name in (*GROUPS, "chess")}
    people.stranger.groups.set(groups.values())
    people.teammate.groups.set([groups["auditors"], groups["chess"]])
    people.admin.groups.set([groups["auditors"]])
    expected = {people.stranger: Role.OPERATOR, people.teammate: Role.AUDITOR, people.admin: Role.ADMIN}
    assert {user: role_of(user) for user in expected} == expected
    viewers = viewers_of([in_session(user) for user in expected])
    assert {user: viewers[user.pk].role for user in expected} == expected
    sessions = {user: key_of(client_of(user)) for user in expected}
    users = valid_users(sessions.values(), tuple(GROUPS))
    assert {user: viewer_in(users[key]).role for user, key in sessions.items()} == expected


def test_an_auditor_sees_all_and_changes_nothing(people: People) -> None:
    people.stranger.groups.set([Group.objects.get_or_create(name="auditors")[0]])
    row = Row(owner_id=people.owner.pk, project_member_ids=frozenset({people.owner.pk}))
    assert may_observe(people.stranger) and may_see_execution(people.stranger, row)
    assert may_read_execution(people.stranger, row)
    assert not may_operate(people.stranger) and not may_administer(people.stranger)


def test_a_closed_account_has_no_rights(people: People) -> None:
    people.admin.is_active = False
    assert not may_administer(people.admin)
    assert not may_operate(people.admin)
    assert viewer_of(people.admin) is None


@pytest.mark.parametrize(
    ("who", "sees", "manages"),
    [
        ("owner", True, True),
        ("teammate", True, False),
        ("operator", True, False),
        ("admin", True, False),
        ("stranger", False, False),
        (None, False, False),
    ],
)
def test_execution_is_managed_only_by_its_owner(people: People, who: str | None, sees: bool, manages: bool) -> None:
    row = Row(owner_id=people.owner.pk, project_member_ids=frozenset({people.owner.pk, people.teammate.pk}))
    user = getattr(people, who) if who else AnonymousUser()
    assert (may_see_execution(user, row), may_manage_workspace(user, row)) == (sees, manages)


def test_former_member_sees_own_execution_but_reads_nothing(people: People) -> None:
    row = Row(owner_id=people.owner.pk, project_member_ids=frozenset({people.teammate.pk}))
    assert may_see_execution(people.owner, row)
    assert not may_read_execution(people.owner, row)
    assert may_read_execution(people.teammate, row)
    assert may_read_execution(people.operator, row)
    assert not may_read_execution(people.stranger, row)
    assert not may_read_execution(AnonymousUser(), row)


def test_a_viewer_is_the_person_as_a_value(people: People) -> None:
    expected = Viewer(id=people.operator.pk, username="olga-operator", role=Role.OPERATOR)
    viewer = viewer_of(people.operator)
    assert viewer == expected
    assert viewer_of(expected) is expected
    assert role_of(expected) is Role.OPERATOR
    assert viewers_of([in_session(people.operator)]) == {people.operator.pk: expected}


def test_admin_page_answers_only_admins(people: People, rf: RequestFactory) -> None:
    @admin_required
    def page(request: HttpRequest, tier: str, *, verb: str) -> HttpResponse:
        return HttpResponse(f"{request.user} may {verb} {tier}")

    request = rf.get("/")
    request.user = people.admin
    assert page(request, "small", verb="edit").content == b"ada-admin may edit small"
    request.user = people.operator
    with pytest.raises(PermissionDenied, match=r"^Only admins can see this page\.$"):
        page(request, "small", verb="edit")


@pytest.mark.django_db(transaction=True)
async def test_an_async_page_for_admins_is_guarded_alike(people: People, rf: RequestFactory) -> None:
    @admin_required
    async def page(request: HttpRequest, tier: str, *, verb: str) -> HttpResponse:
        return HttpResponse(f"{request.user} may {verb} {tier}")

    request = rf.get("/")
    request.user = people.admin
    assert (await page(request, "small", verb="edit")).content == b"ada-admin may edit small"
    request.user = people.owner
    with pytest.raises(PermissionDenied):
        await page(request, "small", verb="edit")


def test_theme_is_kept_and_redirect_stays_on_site(client: Client, db: None) -> None:
    response = client.post("/theme/", {"theme": "dark", "next": "https://evil.example/"})
    assert response["Location"] == "/"
    assert response.cookies["theme"].value == "dark"
    assert b'data-theme="dark"' in client.get("/login/").content


def test_a_nonsense_theme_changes_nothing(client: Client, db: None) -> None:
    assert "theme" not in client.post("/theme/", {"theme": '"><script>', "next": "/login/"}).cookies
    client.cookies["theme"] = '"><script>'
    assert b'data-theme="auto"' in client.get("/login/").content
