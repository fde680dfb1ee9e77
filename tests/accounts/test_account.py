"""One's sessions and password: seen and changed by their owner only, with effect at once."""

from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client
from pytest_django import Settings

from grid.accounts.sessions import stored_key
from grid.models import AuditEntry, Session, User
from tests.conftest import People
from tests.support import hashing

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
NEW = "a new and long password"


def log_in(user: User, *, address: str = "10.0.0.1", agent: str = FIREFOX) -> Client:
    client = Client(REMOTE_ADDR=address, HTTP_USER_AGENT=agent)
    answer = client.post("/login/", {"username": user.username, "password": f"{user.username}-password"})
    assert answer.status_code == 302
    return client


def key_of(client: Client) -> str:
    return stored_key(client.cookies[django_settings.SESSION_COOKIE_NAME].value)


def is_logged_in(client: Client) -> bool:
    return bool(client.get("/account/").status_code == 200)


def change_password(client: Client, old: str, new: str = NEW, again: str = "") -> Any:
    form = {"old_password": old, "new_password1": new, "new_password2": again or new}
    return client.post("/account/password/", form)


def test_session_list_shows_only_own_browsers_and_addresses(people: People) -> None:
    log_in(people.stranger, address="10.9.9.9")
    log_in(people.owner, address="10.0.0.2", agent="curl/8.5.0 <script>")
    page = log_in(people.owner).get("/account/").content.decode()
    assert "Firefox on Linux" in page
    assert "10.0.0.1" in page
    assert "10.0.0.2" in page
    assert page.count("this one") == 1
    assert page.index("Firefox on Linux") < page.index("curl/8.5.0"), "this one is first"
    assert "10.9.9.9" not in page
    assert "<script>" not in page.replace("<script ", "")


def test_profile_is_changed_by_its_owner_and_audited(people: People) -> None:
    client = log_in(people.owner)
    values = {"name": "  Alice   B. <Liddell> ", "email": "alice@example.org"}
    page = client.post("/account/", values, follow=True).content.decode()
    assert "Your profile is saved." in page, "without a mail server an address is stored as it is typed"
    assert "Alice B. &lt;Liddell&gt;</strong>" in page, "the menu has the display name"
    assert "<bdi>alice</bdi>" in page, "and the user name"
    people.owner.refresh_from_db()
    assert (people.owner.username, people.owner.email) == ("alice", "alice@example.org")
    entry = AuditEntry.objects.get(object_type="user")
    assert (entry.actor_name, entry.object_id) == ("alice", str(people.owner.pk))
    assert entry.changes == {"name": ["", "Alice B. <Liddell>"], "email": ["", "alice@example.org"]}
    client.post("/account/", values)
    assert AuditEntry.objects.filter(object_type="user").count() == 1, "what is the same is no change"
    person = log_in(people.admin).get(f"/people/{people.owner.pk}/").content.decode()
    assert "Alice B. &lt;Liddell&gt;" in person and "alice@example.org" in person


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"email": "no address"}, "email"),
        ({"email": "a" * 250 + "@example.org"}, "email"),
        ({"name": "x" * 151}, "name"),
        ({"name": "nul\0"}, "name"),
    ],
)
def test_a_wrong_profile_is_refused_at_its_field(people: People, values: dict[str, str], field: str) -> None:
    answer = log_in(people.owner).post("/account/", values)
    assert answer.status_code == 422
    assert answer.context["form"].errors.keys() == {field}
    assert not AuditEntry.objects.filter(object_type="user").exists()


def test_ending_one_session_ends_that_one(people: People) -> None:
    here, there, third = (log_in(people.owner) for _ in range(3))
    assert here.post("/account/sessions/end/", {"session": key_of(there)})["Location"] == "/account/"
    assert [is_logged_in(client) for client in (here, there, third)] == [True, False, True]


def test_ending_the_one_in_use_logs_out(people: People) -> None:
    here = log_in(people.owner)
    key = key_of(here)
    assert here.post("/account/sessions/end/", {"session": key})["Location"] == "/login/"
    assert not Session.objects.filter(pk=key).exists()


@pytest.mark.parametrize("role", ["teammate", "stranger", "operator", "admin"])
def test_nobody_ends_the_session_of_somebody_else(people: People, role: str) -> None:
    theirs = log_in(people.owner)
    mine = log_in(getattr(people, role))
    answer = mine.post("/account/sessions/end/", {"session": key_of(theirs)}, follow=True)
    assert "That session had already ended." in answer.content.decode()
    mine.post("/account/sessions/end-others/")
    assert is_logged_in(theirs)


def test_a_new_password_ends_every_other_session(people: People) -> None:
    here, there = log_in(people.owner), log_in(people.owner)
    key = key_of(here)
    assert change_password(here, "alice-password")["Location"] == "/account/"
    assert [is_logged_in(client) for client in (here, there)] == [True, False]
    assert key_of(here) != key, "whoever had stolen the cookie has nothing"
    assert Session.objects.count() == 1
    assert Client().post("/login/", {"username": "alice", "password": NEW}).status_code == 302


def test_password_rules_are_shown_and_hold(people: People) -> None:
    client = log_in(people.owner)
    assert "at least 12 characters" in client.get("/account/password/").content.decode()
    answer = change_password(client, "alice-password", "elevenchars")
    assert "This password is too short. It must contain at least 12 characters." in answer.content.decode()
    assert User.objects.get(username="alice").check_password("alice-password")


def test_wrong_old_password_counts_like_a_failed_login(people: People, settings: Settings) -> None:
    client = log_in(people.owner)
    statuses = [change_password(client, "wrong").status_code for _ in range(10)]
    assert statuses == [200] * 9 + [429]
    settings.PASSWORD_HASHERS = [hashing.PATH]
    before = hashing.CountingHasher.count
    answer = change_password(client, "alice-password")
    assert answer.status_code == 429
    assert "Too many wrong passwords" in answer.content.decode()
    assert hashing.CountingHasher.count == before
    login = Client(REMOTE_ADDR="10.0.0.1").post("/login/", {"username": "alice", "password": "alice-password"})
    assert login.status_code == 429


def test_the_admins_own_pages_for_passwords_lead_to_ours(people: People) -> None:
    assert Client().get("/admin/")["Location"] == "/admin/login/?next=/admin/"
    assert Client().get("/admin/login/?next=/admin/auth/")["Location"] == "/login/?next=/admin/auth/"
    assert (
        Client().post("/admin/login/", {"username": "ada-admin", "password": "ada-admin-password"}).status_code == 405
    )
    admin = log_in(people.admin)
    assert admin.get("/admin/").status_code == 200
    assert admin.get("/admin/password_change/")["Location"] == "/account/password/"


@pytest.mark.parametrize("role", ["owner", "operator"])
def test_person_without_admin_rights_gets_403_without_redirect_loop(people: People, role: str) -> None:
    answer = log_in(getattr(people, role)).get("/admin/", follow=True)
    assert (answer.status_code, answer.redirect_chain) == (403, [("/admin/login/?next=/admin/", 302)])


def test_the_login_page_leads_no_further_than_here(people: People) -> None:
    answer = Client().get("/admin/login/?next=https://evil.example/")
    assert answer["Location"].startswith("/login/?next=")
    client = Client()
    form = {"username": "alice", "password": "alice-password", "next": "https://evil.example/"}
    assert client.post(answer["Location"], form)["Location"] == "/"


@pytest.mark.parametrize(("who", "first"), [("owner", "/"), ("operator", "/overview/"), ("admin", "/overview/")])
def test_people_watching_the_cluster_see_it_first_after_login(people: People, who: str, first: str) -> None:
    name = getattr(people, who).username
    sent = {"username": name, "password": f"{name}-password"}
    assert Client().post("/login/", sent)["Location"] == first
    assert Client().post("/login/", {**sent, "next": "/workspaces/"})["Location"] == "/workspaces/"
