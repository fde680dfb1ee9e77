"""Who may see and do what, role by role, and the pages that everybody meets first."""

from dataclasses import dataclass

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from dashboard.access import (
    Role,
    may_administer,
    may_operate,
    may_see_execution,
    role_of,
    viewer_of,
)
from tests.conftest import People


@dataclass(frozen=True)
class Row:
    owner_id: int
    project_member_ids: frozenset[int]


def test_each_person_has_one_role(people: People) -> None:
    assert role_of(people.admin) is Role.ADMIN
    assert role_of(people.operator) is Role.OPERATOR
    assert role_of(people.owner) is Role.SCIENTIST
    assert role_of(AnonymousUser()) is Role.SCIENTIST


def test_a_closed_account_has_no_rights(people: People) -> None:
    people.admin.is_active = False
    assert not may_administer(people.admin)
    assert not may_operate(people.admin)
    assert viewer_of(people.admin) is None


def test_an_execution_is_seen_by_its_owner_its_project_and_who_operates(people: People) -> None:
    row = Row(owner_id=people.owner.pk, project_member_ids=frozenset({people.owner.pk, people.teammate.pk}))
    assert may_see_execution(people.owner, row)
    assert may_see_execution(people.teammate, row)
    assert may_see_execution(people.operator, row)
    assert may_see_execution(people.admin, row)
    assert not may_see_execution(people.stranger, row)
    assert not may_see_execution(AnonymousUser(), row)


def test_a_viewer_answers_like_its_user(people: People) -> None:
    for user in (people.admin, people.operator, people.owner):
        viewer = viewer_of(user)
        assert viewer is not None
        assert (may_operate(viewer), may_administer(viewer)) == (may_operate(user), may_administer(user))


@pytest.mark.usefixtures("runtime")
def test_whoever_is_not_logged_in_is_sent_to_the_login_page_and_back(people: People, client: Client) -> None:
    response = client.get("/")
    assert response.status_code == 302
    assert response["Location"] == "/login/?next=/"
    response = client.post("/login/", {"username": "alice", "password": "alice-password", "next": "/"})
    assert response["Location"] == "/"
    assert b"Hello, alice" in client.get("/").content


def test_a_wrong_password_is_said_without_saying_which_part_is_wrong(people: People, client: Client) -> None:
    response = client.post("/login/", {"username": "alice", "password": "nonsense"})
    assert response.status_code == 200
    assert b"Please enter a correct username and password" in response.content


def test_logging_out_takes_a_post(people: People, client: Client) -> None:
    client.force_login(people.owner)
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/").status_code == 302


def test_the_theme_is_kept_and_the_way_back_stays_here(client: Client, db: None) -> None:
    response = client.post("/theme/", {"theme": "dark", "next": "https://evil.example/"})
    assert response["Location"] == "/"
    assert response.cookies["theme"].value == "dark"
    assert b'data-theme="dark"' in client.get("/login/").content


def test_a_nonsense_theme_changes_nothing(client: Client, db: None) -> None:
    assert "theme" not in client.post("/theme/", {"theme": '"><script>', "next": "/login/"}).cookies
    client.cookies["theme"] = '"><script>'
    assert b'data-theme="auto"' in client.get("/login/").content


def test_an_unknown_page_says_so_kindly(people: People, client: Client) -> None:
    client.force_login(people.owner)
    response = client.get("/nothing/")
    assert response.status_code == 404
    assert b"There is nothing here" in response.content
