"""Fixtures shared by all tests: the people of every page test, and a clean central configuration."""

from dataclasses import dataclass

import pytest
from django.contrib.auth.models import Group, User
from hypothesis import settings

settings.register_profile("no deadline", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("no deadline")


@dataclass(frozen=True)
class People:
    """The owner, a member of the owner's project, somebody unrelated, and the two roles that see everything."""

    owner: User
    teammate: User
    stranger: User
    operator: User
    admin: User


@pytest.fixture
def people(db: None) -> People:
    def make(name: str) -> User:
        return User.objects.create_user(username=name, password=f"{name}-password")

    operator = make("olga-operator")
    operator.groups.add(Group.objects.get_or_create(name="operators")[0])
    return People(
        owner=make("alice"),
        teammate=make("bob"),
        stranger=make("charlie"),
        operator=operator,
        admin=User.objects.create_superuser(username="ada-admin", password="ada-admin-password"),
    )
