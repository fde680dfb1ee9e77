"""Demo accounts log in only in demo mode, and only from this machine."""

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import Group
from django.http import HttpRequest
from pytest_django.fixtures import Settings

from grid.accounts.backend import DEMO_GROUP, AccountBackend
from grid.models import User


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
