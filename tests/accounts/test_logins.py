"""Locked logins: admins see and end them; everybody else is refused."""

import pytest
from django.test import Client

from grid.core.hashing import hashing_queue
from grid.models import AuditEntry
from tests.conftest import People
from tests.shell.browsing import client_of

ADDRESS = "203.0.113.9"
LOCK = {"scope": "name at address", "name": "alice", "address": ADDRESS}


@pytest.fixture
def locked(people: People) -> Client:
    """A browser from whose address alice's name is locked."""
    client = Client(REMOTE_ADDR=ADDRESS)
    for _ in range(10):
        client.post("/login/", {"username": "alice", "password": "wrong"})
    return client


def log_in(client: Client) -> int:
    status: int = client.post("/login/", {"username": "alice", "password": "alice-password"}).status_code
    return status


def test_admin_unlocks_with_one_button_and_is_audited(locked: Client, admin: Client) -> None:
    page = admin.get("/logins/").content.decode()
    assert f"alice at {ADDRESS}" in page
    assert "10 wrong passwords" in page
    page = admin.post("/logins/unlock/", LOCK, follow=True).content.decode()
    assert "Unlocked: logging in is possible again." in page
    assert "Nothing is locked." in page
    assert f"Unlocked alice at {ADDRESS}" in page
    assert log_in(locked) == 302
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
def test_absent_lock_unlocks_nothing(locked: Client, admin: Client, typed: dict[str, str], status: int) -> None:
    assert admin.post("/logins/unlock/", typed).status_code == status
    assert log_in(locked) == 429


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
