"""The fixtures of tests of pages and of launches that this room uses."""

import pytest

from grid.models import Project
from tests.conftest import People
from tests.executions.executing import offer_clusters
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
def offered(people: People) -> Project:
    """A project of the owner's, in which notebooks and clusters may be launched on two tiers."""
    return offer_clusters(people)
