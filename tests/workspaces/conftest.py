"""The fixtures of tests of pages and of launches that this room uses."""

import pytest

from grid.models import Project, Workspace
from tests.conftest import People
from tests.executions.executing import make_project, make_workspace
from tests.support.pages import admin as admin
from tests.support.pages import clock as clock
from tests.support.pages import cluster as cluster
from tests.support.pages import patient as patient
from tests.support.pages import runtime as runtime
from tests.support.pages import tier as tier
from tests.support.pages import two_pools as two_pools
from tests.support.shop import configure as configure
from tests.support.shop import shop as shop
from tests.support.shop import worker_tier as worker_tier


@pytest.fixture
def project(people: People) -> Project:
    return make_project(people.owner, people.teammate)


@pytest.fixture
def stopped(people: People, project: Project) -> Workspace:
    return make_workspace(people.owner, project)
