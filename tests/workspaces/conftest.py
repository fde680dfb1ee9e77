"""The fixtures of tests of pages and of launches that this room uses."""

import pytest

from grid.models import Project, Workspace
from tests.conftest import People
from tests.executions.executing import make_project, make_workspace
from tests.support.pages import (
    admin as admin,
    clock as clock,
    cluster as cluster,
    patient as patient,
    runtime as runtime,
    tier as tier,
    two_pools as two_pools,
)
from tests.support.shop import configure as configure, shop as shop, worker_tier as worker_tier


@pytest.fixture
def project(people: People) -> Project:
    return make_project(people.owner, people.teammate)


@pytest.fixture
def stopped(people: People, project: Project) -> Workspace:
    return make_workspace(people.owner, project)
