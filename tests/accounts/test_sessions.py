"""Sessions and passwords: when they end by themselves, and what their owner alone sees and changes, with effect at once."""

from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest
from django.conf import settings as django_settings
from django.contrib.auth import authenticate
from django.contrib.auth.models import Group
from django.contrib.sessions.backends.base import UpdateError
from django.db import OperationalError
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from grid.accounts.backend import DEMO_GROUP, AccountBackend
from grid.accounts.sessions import SessionStore, SessionUser, holds, purge, stored_key, valid_users
from grid.asgi import dashboard
from grid.edge.limits import BodyRefused
from grid.models import AuditEntry, Session, User
from tests.conftest import People, client_of
from tests.support import hashing

IDLE, ABSOLUTE = timedelta(hours=12), timedelta(days=7)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
NEW = "a new and long password"


def cookie(client: Client) -> str:
    return client.cookies[django_settings.SESSION_COOKIE_NAME].value


def in_session(user: User) -> SessionUser:
    return SessionUser(user.pk, user.username, user.is_superuser)


def key_of(client: Client) -> str:
    return stored_key(cookie(client))


def age(client: Client, *, created: timedelta = timedelta(0), seen: timedelta = timedelta(0)) -> None:
    now = timezone.now()
    Session.objects.filter(pk=key_of(client)).update(created_at=now - created, seen_at=now - seen)


def is_logged_in(client: Client) -> bool:
    return client.get("/theme/").status_code == 405 and client.get("/projects/").status_code in (200, 403)


@pytest.fixture
def session(people: People) -> Client:
    return client_of(people.owner)


@pytest.mark.parametrize(
    ("created", "seen", "alive"),
    [
        (timedelta(0), IDLE - timedelta(minutes=1), True),
        (timedelta(0), IDLE, False),
        (ABSOLUTE - timedelta(minutes=1), timedelta(0), True),
        (ABSOLUTE, timedelta(0), False),
    ],
)
def test_a_session_ends_when_it_is_idle_or_old(
    session: Client, people: People, created: timedelta, seen: timedelta, alive: bool
) -> None:
    age(session, created=created, seen=seen)
    assert valid_users([key_of(session)]) == ({key_of(session): in_session(people.owner)} if alive else {})
    assert is_logged_in(session) is alive


def test_page_views_keep_session_alive_with_rare_writes(session: Client) -> None:
    age(session, seen=timedelta(seconds=30))
    before = Session.objects.get().seen_at
    session.get("/projects/")
    assert Session.objects.get().seen_at == before
    age(session, seen=timedelta(seconds=90))
    session.get("/projects/")
    assert timezone.now() - Session.objects.get().seen_at < timedelta(seconds=30)


def test_many_sessions_are_checked_in_a_query(
    people: People, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    clients = [client_of(user) for user in (people.owner, people.teammate, people.owner)]
    ended = client_of(people.stranger)
    ended.logout()
    keys = [key_of(client) for client in clients]
    with django_assert_num_queries(1):
        assert valid_users([*keys, "unknown"]) == dict(
            zip(keys, map(in_session, (people.owner, people.teammate, people.owner)), strict=True)
        )
    with django_assert_num_queries(0):
        assert valid_users([]) == {}


def test_closed_account_and_changed_password_end_all_sessions(session: Client, people: People) -> None:
    other = client_of(people.teammate)
    people.owner.set_password("another password")
    people.owner.save()
    people.teammate.is_active = False
    people.teammate.save()
    assert valid_users([key_of(session), key_of(other)]) == {}


def test_a_demo_accounts_session_ends_with_demo_mode(people: People, settings: Settings) -> None:
    settings.DEMO = True
    people.owner.groups.add(Group.objects.create(name=DEMO_GROUP))
    session = client_of(people.owner)
    assert valid_users([key_of(session)])
    settings.DEMO = False
    assert not valid_users([key_of(session)])


@pytest.mark.django_db(transaction=True)
async def test_upload_needs_a_session_with_a_logged_in_user(
    session: Client, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await holds(cookie(session))
    assert not await holds("made-up") and not await holds(key_of(session)) and not await holds("\xff" * 5000)
    monkeypatch.setattr("grid.accounts.sessions.valid_users", Mock(side_effect=OperationalError))
    with pytest.raises(BodyRefused, match="session-unknown"):
        await holds(cookie(session))


@pytest.mark.django_db(transaction=True)
async def test_upload_with_made_up_cookie_is_refused_before_arrival(people: People) -> None:
    headers = {"cookie": f"{django_settings.SESSION_COOKIE_NAME}=made-up", "content-length": "20000"}
    sent: list[Any] = []

    async def receive() -> NoReturn:
        raise AssertionError("its body is read")

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/projects/churn/files/upload/",
        "client": ("10.0.0.1", 5),
    }
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    await dashboard(scope, receive, send)
    assert sent[0]["status"] == 413 and b"Log in" in sent[1]["body"]


def test_session_table_holds_nothing_usable_as_a_cookie(session: Client) -> None:
    kept = Session.objects.get()
    assert cookie(session) not in (kept.pk, kept.session_data)
    thief = Client()
    thief.cookies[django_settings.SESSION_COOKIE_NAME] = kept.pk
    assert not is_logged_in(thief)


def test_ended_session_is_not_revived_by_a_running_request(session: Client) -> None:
    store = SessionStore(cookie(session))
    store["late"] = True
    session.logout()
    with pytest.raises(UpdateError):
        store.save()
    assert not Session.objects.exists()


def test_address_and_browser_are_kept_cleaned_and_cut(people: People) -> None:
    client = Client(REMOTE_ADDR="10.1.2.3", HTTP_USER_AGENT="Mozilla\x1b[31m\u202e " + "x" * 10_000)
    client.post("/login/", {"username": "alice", "password": "alice-password"})
    kept = Session.objects.get()
    assert (kept.user, kept.address) == (people.owner, "10.1.2.3")
    assert kept.agent.startswith("Mozilla[31m xxx")
    assert len(kept.agent) == 200


def test_purging_takes_what_has_ended_and_nothing_else(session: Client, people: People) -> None:
    old, idle = client_of(people.owner), client_of(people.owner)
    age(old, created=ABSOLUTE)
    age(idle, seen=IDLE)
    assert purge(timezone.now()) == 2
    assert [kept.pk for kept in Session.objects.all()] == [key_of(session)]
    assert purge(datetime.now(UTC) + ABSOLUTE) == 1


def log_in(user: User, *, address: str = "10.0.0.1", agent: str = FIREFOX) -> Client:
    client = Client(REMOTE_ADDR=address, HTTP_USER_AGENT=agent)
    answer = client.post("/login/", {"username": user.username, "password": f"{user.username}-password"})
    assert answer.status_code == 302
    return client


def sees_own_account(client: Client) -> bool:
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
    assert [sees_own_account(client) for client in (here, there, third)] == [True, False, True]


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
    assert sees_own_account(theirs)


def test_a_new_password_ends_every_other_session(people: People) -> None:
    here, there = log_in(people.owner), log_in(people.owner)
    key = key_of(here)
    assert change_password(here, "alice-password")["Location"] == "/account/"
    assert [sees_own_account(client) for client in (here, there)] == [True, False]
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


def request(*, client: str, server: str) -> HttpRequest:
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": client, "SERVER_NAME": server}
    return request


@pytest.fixture
def demo_user(db: None) -> User:
    user = User.objects.create_user("scientist", password="printed")
    user.groups.add(Group.objects.create(name=DEMO_GROUP))
    return user


@pytest.mark.parametrize(
    ("client", "server", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("::1", "localhost", True),
        ("10.0.0.7", "127.0.0.1", False),
        ("127.0.0.1", "0.0.0.0", False),
        ("127.0.0.1", "grid.example.org", False),
        ("", "127.0.0.1", False),
    ],
)
def test_a_demo_login_needs_loopback_on_both_sides(
    demo_user: User, settings: Settings, client: str, server: str, allowed: bool
) -> None:
    settings.DEMO = True
    user = authenticate(request(client=client, server=server), username="scientist", password="printed")
    assert (user == demo_user) is allowed


def test_demo_account_is_unusable_outside_demo_mode(demo_user: User, settings: Settings) -> None:
    settings.DEMO = False
    local = request(client="127.0.0.1", server="127.0.0.1")
    assert authenticate(local, username="scientist", password="printed") is None
    assert AccountBackend().get_user(demo_user.pk) is None


def test_an_account_of_ones_own_logs_in_from_anywhere(db: None, settings: Settings) -> None:
    settings.DEMO = False
    mine = User.objects.create_user("ada", password="secret-words")
    far = request(client="10.0.0.7", server="grid.example.org")
    assert authenticate(far, username="ada", password="secret-words") == mine
    assert authenticate(far, username="ada", password="wrong") is None
    assert AccountBackend().get_user(mine.pk) == mine
