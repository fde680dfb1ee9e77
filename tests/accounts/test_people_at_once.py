"""Two admins, two owners of a link, two changes of a project at the same moment, each with a connection of its own."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import PermissionDenied
from django.db import connection

from dashboard.accounts import people as accounts
from dashboard.shell.access import Role
from grid.models import AuditEntry, User
from tests.conftest import client_of, make_people
from tests.executions.executing import make_project
from tests.support.database import database_on_file


@pytest.fixture(autouse=True)
def on_file(transactional_db: None, tmp_path: Path) -> Iterator[None]:
    with database_on_file(tmp_path / "grid.sqlite3"):
        yield


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """Return what each returned, or the PermissionDenied that it raised."""
    barrier = Barrier(len(work))

    def do(function: Callable[[], Any]) -> Any:
        barrier.wait(timeout=10)
        try:
            return function()
        except PermissionDenied as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(work)) as threads:
        return list(threads.map(do, work))


@pytest.mark.parametrize("number", [2, 3])
def test_admins_who_demote_each_other_leave_one(number: int) -> None:
    admins = [User.objects.create_superuser(f"admin-{index}") for index in range(number)]
    pairs = list(zip(admins, [*admins[1:], admins[0]], strict=True))

    def demote(actor: User, other: User) -> Callable[[], Any]:
        return lambda: accounts.change_role(other.pk, Role.PRACTITIONER, actor=actor)

    answers = at_once(*(demote(actor, other) for actor, other in pairs))
    refused = [answer for answer in answers if isinstance(answer, PermissionDenied)]
    left = User.objects.filter(is_superuser=True, is_active=True).count()
    assert left >= 1
    assert left == len(refused), "each that was let through demoted one"
    assert AuditEntry.objects.count() == number - left


def test_admins_who_deactivate_each_other_leave_one() -> None:
    first, second = (User.objects.create_superuser(name) for name in ("first", "second"))
    at_once(
        lambda: accounts.set_active(second.pk, False, actor=first),
        lambda: accounts.set_active(first.pk, False, actor=second),
    )
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1


def test_a_link_opened_twice_at_once_sets_one_password() -> None:
    nina = User.objects.create_user("nina")
    token = default_token_generator.make_token(nina)

    def join(password: str) -> Callable[[], bool]:
        user = User.objects.get(pk=nina.pk)
        user.set_password(password)
        return lambda: accounts.set_password(user, token)

    passwords = ["first passphrase", "second passphrase"]
    answers = at_once(*map(join, passwords))
    assert sorted(answers) == [False, True]
    nina.refresh_from_db()
    assert nina.check_password(passwords[answers.index(True)])


def test_two_members_added_at_once_are_both_in() -> None:
    people = make_people()
    project = make_project(people.owner)

    def add(name: str) -> Callable[[], Any]:
        client = client_of(people.owner)
        return lambda: client.post("/projects/churn/members/", {"username": name, "role": "viewer"}).status_code

    assert at_once(add("bob"), add("charlie"), add("bob")) == [302, 302, 302]
    assert project.people()["viewers"] == ["bob", "charlie"]
