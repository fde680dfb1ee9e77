"""The fixtures of tests of pages and of launches that this room uses, and who stores secrets."""

import pytest

from grid.models import Project, User
from tests.support.pages import clock as clock, cluster as cluster, patient as patient, runtime as runtime
from tests.support.shop import shop as shop


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user(username="alice")


@pytest.fixture
def project(alice: User) -> Project:
    return Project.objects.start(owner=alice, id="churn", name="Churn <b>")
