"""How many wrong passwords lock what, for whom, how long; that nothing is told of which names are accounts; and who ends a lock."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessLog
from django.contrib.auth.models import Group
from django.db import connection
from django.http import HttpRequest
from django.test import AsyncClient, Client
from django.utils import timezone
from pytest_django import Settings

from grid import configuration as centralconfig
from grid.accounts import lockouts
from grid.accounts.backend import DEMO_GROUP
from grid.accounts.lockouts import Scope, client_network, locks, purge
from grid.core.hashing import hashing_queue
from grid.models import AuditEntry, User
from tests.conftest import People, client_of
from tests.support import hashing
from tests.support.database import database_on_file
from tests.support.settings import change

HOME, ELSEWHERE = "10.0.0.1", "203.0.113.9"
COOL_OFF = timedelta(minutes=15)
ADDRESS = "203.0.113.9"
LOCK = {"scope": "name at address", "name": "alice", "address": ADDRESS}


@pytest.fixture
def few(people: People) -> People:
    """Low limits: three for a name at an address, six for an address, six for a name."""
    for setting, value in (
        (centralconfig.LOGIN_FAILURES_AT_ADDRESS, "3"),
        (centralconfig.LOGIN_FAILURES_OF_ADDRESS, "6"),
        (centralconfig.LOGIN_FAILURES_OF_NAME, "6"),
    ):
        change(setting.key, value, actor=people.admin)
    return people


def log_in(name: str, password: str = "", *, address: str = HOME) -> Any:
    return Client(REMOTE_ADDR=address).post("/login/", {"username": name, "password": password or f"{name}-password"})


def guess(name: str, times: int, *, address: str = ELSEWHERE) -> list[int]:
    return [log_in(name, "wrong", address=address).status_code for _ in range(times)]


def locked(answer: Any) -> bool:
    return bool(answer.status_code == 429)


def later(by: timedelta) -> None:
    """Time goes on: everything known is older."""
    for row in (*AccessAttempt.objects.all(), *AccessLog.objects.all()):
        type(row).objects.filter(pk=row.pk).update(attempt_time=row.attempt_time - by)


def test_locked_name_refuses_even_the_right_password(few: People) -> None:
    assert guess("alice", 4) == [200, 200, 429, 429]
    answer = log_in("alice", address=ELSEWHERE)
    assert answer.status_code == 429
    assert 14 * 60 < int(answer["Retry-After"]) <= 15 * 60
    text = answer.content.decode()
    assert "Too many wrong passwords for this name from your address." in text
    assert "Try again in 15 minutes, or ask an admin to unlock it." in text


@pytest.mark.django_db(transaction=True)
async def test_a_server_that_answers_asynchronously_says_the_same(few: People) -> None:
    client = AsyncClient()
    form = {"username": "alice", "password": "wrong"}
    answers = [await client.post("/login/", form) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert all("Too many wrong passwords" in answer.content.decode() for answer in answers[2:])


def test_lock_expires_despite_further_guesses(few: People) -> None:
    guess("alice", 3)
    later(COOL_OFF - timedelta(minutes=1))
    assert guess("alice", 2) == [429, 429]
    later(timedelta(minutes=1))
    assert log_in("alice", address=ELSEWHERE).status_code == 302


def test_address_with_many_names_is_locked_for_everybody(few: People) -> None:
    for number in range(6):
        log_in(f"name-{number}", "wrong", address=ELSEWHERE)
    answer = log_in("bob", address=ELSEWHERE)
    assert locked(answer)
    assert "Too many wrong passwords from your address." in answer.content.decode()
    assert log_in("bob").status_code == 302


def test_name_guessed_from_everywhere_is_locked_except_at_home(few: People) -> None:
    assert log_in("alice").status_code == 302
    for number in range(3):
        guess("alice", 2, address=f"198.51.100.{number}")
    answer = log_in("alice", address="192.0.2.77")
    assert locked(answer)
    assert "Too many wrong passwords for this name." in answer.content.decode()
    assert log_in("alice").status_code == 302
    later(timedelta(days=90))
    for number in range(3):
        guess("alice", 2, address=f"198.51.100.{number}")
    assert locked(log_in("alice")), "that login is too long ago"


def test_own_account_of_attacker_does_not_reset_his_address(few: People) -> None:
    guess("alice", 2)
    guess("bob", 2)
    assert log_in("charlie", address=ELSEWHERE).status_code == 302
    assert guess("olga-operator", 2) == [200, 429]


def test_a_right_password_forgets_that_names_failures_there(few: People) -> None:
    assert guess("alice", 2, address=HOME) == [200, 200]
    assert log_in("alice").status_code == 302
    assert guess("alice", 2, address=HOME) == [200, 200]


def test_limit_from_central_configuration_applies_at_once(people: People) -> None:
    guess("alice", 4)
    assert not locked(log_in("bob", "wrong", address=ELSEWHERE))
    change(centralconfig.LOGIN_FAILURES_AT_ADDRESS.key, "4", actor=people.admin)
    assert locked(log_in("alice", address=ELSEWHERE))
    change(centralconfig.LOGIN_COOL_OFF.key, "60", actor=people.admin)
    later(timedelta(minutes=1))
    assert log_in("alice", address=ELSEWHERE).status_code == 302


@pytest.fixture
def everybody(few: People, settings: Settings) -> list[str]:
    """An account, an unknown name, a closed account, one without a password, and a demo account asked from elsewhere."""
    User.objects.create_user("closed", password="closed-password", is_active=False)
    User.objects.create_user("no-password")
    demo = User.objects.create_user("demo", password="demo-password")
    demo.groups.add(Group.objects.create(name=DEMO_GROUP))
    settings.DEMO = True
    return ["alice", "nobody-has-this-name", "closed", "no-password", "demo"]


def shown(answer: Any, name: str) -> str:
    """But for what is of one answer or of what was typed."""
    text = re.sub(r"value=\"\w{64}\"|nonce=\"[^\"]+\"", "", answer.content.decode())
    return text.replace(name, "NAME")


def test_the_answers_do_not_tell_which_names_are_accounts(everybody: list[str]) -> None:
    seen = []
    for number, name in enumerate(everybody):
        address = f"203.0.113.{number}"
        answers = [log_in(name, "wrong", address=address) for _ in range(4)]
        seen.append([(answer.status_code, shown(answer, name)) for answer in answers])
    assert [status for status, _ in seen[0]] == [200, 200, 429, 429]
    assert seen == [seen[0]] * len(everybody)


def test_each_answer_costs_one_hash_whatever_the_name_is(everybody: list[str], settings: Settings) -> None:
    settings.PASSWORD_HASHERS = [hashing.PATH]
    for user in User.objects.exclude(username="no-password"):
        user.set_password(f"{user.username}-password")
        user.save()
    for name in (*everybody, "closed", "demo"):
        before = hashing.CountingHasher.count
        right = name in ("closed", "demo")
        log_in(name, "" if right else "wrong", address="203.0.113.4")
        AccessAttempt.objects.all().delete()
        assert hashing.CountingHasher.count == before + 1, name


def test_locked_out_login_costs_no_hash(few: People, settings: Settings) -> None:
    guess("alice", 3)
    guess("nobody", 3, address="203.0.113.10")
    settings.PASSWORD_HASHERS = [hashing.PATH]
    before = hashing.CountingHasher.count
    assert locked(log_in("alice", address=ELSEWHERE))
    assert locked(log_in("nobody", address="203.0.113.10"))
    assert hashing.CountingHasher.count == before


@pytest.mark.django_db(transaction=True)
def test_guessing_at_once_is_no_way_around_the_limit(few: People, settings: Settings, tmp_path: Path) -> None:
    """Failures are counted before the next password has its turn."""
    settings.PASSWORD_HASHERS = [hashing.PATH]
    before = hashing.CountingHasher.count

    def guess_once(_: int) -> int:
        try:
            return guess("nobody", 1)[0]
        finally:
            connection.close()

    with database_on_file(tmp_path / "grid.sqlite3"), ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(guess_once, range(12)))
    assert hashing.CountingHasher.count - before <= 3
    assert set(answers) <= {200, 429, 503}
    assert answers.count(200) <= 2


def test_each_kind_of_lock_can_be_ended(few: People) -> None:
    for name in ("alice", "bob"):
        guess(name, 3)
    for number in range(2):
        guess("alice", 2, address=f"198.51.100.{number}")
    in_force = {(lock.scope, lock.name, lock.address) for lock in locks(timezone.now())}
    assert {
        (Scope.ADDRESS, "", ELSEWHERE),
        (Scope.NAME, "alice", ""),
        (Scope.NAME_AT_ADDRESS, "bob", ELSEWHERE),
    } <= in_force
    lockouts.unlock(Scope.NAME, "alice", "", actor=few.admin)
    assert {lock.name for lock in locks(timezone.now())} == {"bob"}
    lockouts.unlock(Scope.ADDRESS, "", ELSEWHERE, actor=few.admin)
    assert locks(timezone.now()) == []


def test_purging_takes_what_counts_no_more(few: People) -> None:
    guess("alice", 1)
    log_in("bob")
    now = timezone.now()
    assert purge(now, 10) == 0
    assert purge(now + COOL_OFF, 10) == 1
    assert purge(now + timedelta(days=91), 10) == 1


def test_failure_row_keeps_no_password_and_counts_by_address(few: People) -> None:
    for agent in ("one", "another"):
        Client(REMOTE_ADDR=HOME, HTTP_USER_AGENT=agent).post("/login/", {"username": "alice", "password": "S3cret"})
    (kept,) = AccessAttempt.objects.values()
    assert "S3cret" not in str(kept)
    assert kept["failures_since_start"] == 2


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::"),
        ("not an address", "0.0.0.0"),
    ],
)
def test_an_ipv6_client_is_its_network(address: str, network: str) -> None:
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = address
    assert client_network(request) == network


@pytest.fixture
def locked_browser(people: People) -> Client:
    """A browser from whose address alice's name is locked."""
    client = Client(REMOTE_ADDR=ADDRESS)
    for _ in range(10):
        client.post("/login/", {"username": "alice", "password": "wrong"})
    return client


def log_in_as_alice(client: Client) -> int:
    status: int = client.post("/login/", {"username": "alice", "password": "alice-password"}).status_code
    return status


def test_admin_unlocks_with_one_button_and_is_audited(locked_browser: Client, admin: Client) -> None:
    page = admin.get("/logins/").content.decode()
    assert f"alice at {ADDRESS}" in page
    assert "10 wrong passwords" in page
    page = admin.post("/logins/unlock/", LOCK, follow=True).content.decode()
    assert "Unlocked: logging in is possible again." in page
    assert "Nothing is locked." in page
    assert f"Unlocked alice at {ADDRESS}" in page
    assert log_in_as_alice(locked_browser) == 302
    assert "That lock had already ended." in admin.post("/logins/unlock/", LOCK, follow=True).content.decode()
    assert AuditEntry.objects.filter(action="unlocked").count() == 1


@pytest.mark.parametrize(
    ("typed", "status"),
    [
        ({}, 400),
        ({**LOCK, "scope": "everything"}, 400),
        ({**LOCK, "name": "<b>"}, 302),
        ({**LOCK, "address": "here"}, 400),
    ],
)
def test_absent_lock_unlocks_nothing(locked_browser: Client, admin: Client, typed: dict[str, str], status: int) -> None:
    assert admin.post("/logins/unlock/", typed).status_code == status
    assert log_in_as_alice(locked_browser) == 429


def test_unknown_login_name_is_shown_as_text(people: People, admin: Client) -> None:
    for _ in range(10):
        Client().post("/login/", {"username": "<script>alert(1)</script>", "password": "wrong"})
    page = admin.get("/logins/").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt; at 127.0.0.1" in page


@pytest.mark.parametrize("path", ["/login/", "/account/password/"])
def test_full_hashing_queue_answers_503_with_advice(people: People, path: str) -> None:
    client = client_of(people.owner) if path != "/login/" else Client()
    address = "127.0.0.1"
    with hashing_queue.turn(address):
        hashing_queue._taken[address] += 3  # as if three more waited, which is all that one address may
        try:
            form = {
                "username": "alice",
                "password": "x",
                "old_password": "x",
                "new_password1": "y",
                "new_password2": "y",
            }
            answer = client.post(path, form)
        finally:
            hashing_queue._taken[address] -= 3
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "Try again in a few seconds." in answer.content.decode()
