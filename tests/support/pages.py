"""A cluster in memory, a runtime over it that pages and websockets find, and an admin with a tier to edit."""

from collections.abc import Iterator

import pytest
from django.test import Client

from dashboard.executions.pages import executions
from dashboard.nodes.pages import infrastructure, overview
from grid.core.labels import NODE_POOL
from grid.kube.objects import Node
from grid.models import HardwareTier
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, new_runtime
from tests.conftest import People
from tests.shell.live import Clock
from tests.support.builders import MOMENT, decode, node
from tests.support.cluster import FakeCluster
from tests.support.runtime import become, fill, using_runtime


@pytest.fixture(autouse=True)
def patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """First paints wait for their whole lists, however busy the machine is; some modules are about those that do not."""
    if request.module.__name__.rpartition(".")[2] not in (
        "test_first_paint",
        "test_filling_order",
        "test_longest_wait",
    ):
        for page in (executions, infrastructure, overview):
            monkeypatch.setattr(page, "FIRST_PAINT_SECONDS", 20.0)


@pytest.fixture
def clock() -> Clock:
    return Clock(MOMENT)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def runtime(cluster: FakeCluster, clock: Clock) -> Iterator[Runtime]:
    """Filled from the cluster at first, and by `fill(runtime, cluster)` after each change; no task runs."""
    built = new_runtime({LOCAL: cluster}, clock=clock.now, monotonic=clock.monotonic)
    fill(built, cluster)
    with using_runtime(built):
        yield built


@pytest.fixture
def two_pools() -> Iterator[Runtime]:
    """A runtime that knows two pools of nodes, for the pages of admins."""
    runtime = new_runtime({LOCAL: FakeCluster()})
    nodes = [decode(node(f"n-{pool}", pool=pool), Node) for pool in ("default", "default-gpu")]
    become(runtime.nodes, nodes)
    runtime.nodes.mark_synced(runtime.monotonic())
    runtime.pods.mark_synced(runtime.monotonic())
    assert all(node.metadata.labels[NODE_POOL] for node in nodes)
    with using_runtime(runtime):
        yield runtime


@pytest.fixture
def admin(people: People) -> Client:
    """Logged in."""
    client = Client()
    client.force_login(people.admin)
    return client


@pytest.fixture
def tier(people: People) -> HardwareTier:
    return HardwareTier.objects.create(id="small", name="Small", node_pool="default", cores="1", memory="4Gi")
