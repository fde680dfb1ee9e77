"""Sessions end when they are idle or old, when they are ended, and when the account or its password says so."""

from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Group
from django.contrib.sessions.backends.base import UpdateError
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from grid.accounts.backend import DEMO_GROUP
from grid.accounts.sessions import SessionStore, SessionUser, holds, purge, stored_key, valid_users
from grid.asgi import dashboard
from grid.edge.limits import BodyRefused
from grid.models import Session, User
from tests.conftest import People, client_of

IDLE, ABSOLUTE = timedelta(hours=12), timedelta(days=7)


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


def test_many_sessions_are_checked_in_two_queries(
    people: People, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    clients = [client_of(user) for user in (people.owner, people.teammate, people.owner)]
    ended = client_of(people.stranger)
    ended.logout()
    keys = [key_of(client) for client in clients]
    with django_assert_num_queries(2):
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
