"""A cluster in memory, and a runtime over it that pages and websockets find."""

from collections.abc import Iterator

import pytest

from grid.runtime import Runtime, new_runtime, using_runtime
from tests.dashboard.live import Clock
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill


@pytest.fixture
def clock() -> Clock:
    return Clock(MOMENT)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def runtime(cluster: FakeCluster, clock: Clock) -> Iterator[Runtime]:
    """Filled from the cluster at first, and by `fill(runtime, cluster)` after each change; no task runs."""
    built = new_runtime(cluster, clock=clock.now, monotonic=clock.monotonic)
    fill(built, cluster)
    with using_runtime(built):
        yield built
