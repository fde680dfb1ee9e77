"""What pools' nodes looked like is written by the sampler, read by each web process, and used where a pool has no node."""

import logging
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync

from grid.core.labels import NODE_POOL, SIMULATED
from grid.diagnosis.nodeshapes import NodeTemplate, TemplateTally
from grid.kube.hub import Hub
from grid.kube.objects import Node
from grid.kube.resources import CONFIG_MAPS, NODES, PODS
from grid.models import PoolSample, PoolTemplate
from grid.models.dataplane import LOCAL
from grid.runtime.caches import PoolTemplates, pool_shapes
from grid.runtime.poolsamples import PoolSampler
from grid.tiers.pooltemplates import read, remember
from tests.queue.test_at_once import at_once
from tests.runtime.test_poolsamples import MINUTE, STATUS
from tests.support import builders
from tests.support.builders import MOMENT, decode
from tests.support.cluster import FakeCluster
from tests.support.database import database_on_file
from tests.support.runtime import runtime_of

DAEMON = {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": {"name": "agent", "uid": "1"}}


def a_template(cpu: str = "8", at: datetime = MOMENT) -> NodeTemplate:
    tally = TemplateTally()
    tally.count(decode(builders.node("n", pool="gpu", cpu=cpu), Node), {"cpu": 500})
    template = tally.template(at)
    assert template is not None
    return template


def sample(cluster: FakeCluster, minute: int = MINUTE) -> None:
    runtime = runtime_of(cluster)
    sampler = PoolSampler(runtime.data_planes[LOCAL], clock=lambda: minute * 60.0 + 12, monotonic=runtime.monotonic)
    async_to_sync(sampler.run_once)()


def reader() -> PoolTemplates:
    return PoolTemplates(Hub())


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(NODES, builders.node("n1", cpu="8"))
    cluster.put(NODES, builders.node("n2", cpu="8", ready=False))
    cluster.put(NODES, builders.node("g1", pool="gpu", cpu="64", unschedulable=True))
    cluster.put(NODES, builders.node("s1", pool="simulated", labels={SIMULATED: "true"}))
    cluster.put(NODES, builders.node("platform", pool=""))
    cluster.put(PODS, builders.pod("agent", node="n1", phase="Running", requests={"cpu": "500m"}, owner=DAEMON))
    cluster.put(PODS, builders.pod("works", node="n1", phase="Running", requests={"cpu": "2"}))
    return cluster


@pytest.mark.django_db
def test_the_sampler_remembers_each_pool_whose_nodes_take_pods(cluster: FakeCluster) -> None:
    sample(cluster)
    (row,) = PoolTemplate.objects.all()
    assert (row.pool, row.node["allocatable"]["cpu"], row.own) == ("default", "8000m", {"cpu": 500, "pods": 1})
    assert row.node["labels"][NODE_POOL] == "default"
    assert row.seen_at == datetime.fromtimestamp(MINUTE * 60 + 12, UTC)


@pytest.mark.django_db
def test_a_pool_that_was_scaled_to_zero_stays_remembered(cluster: FakeCluster) -> None:
    sample(cluster)
    before = read()
    cluster.remove(NODES, "n1")
    cluster.remove(NODES, "n2")
    sample(cluster, MINUTE + 1000)
    assert read() == before


@pytest.mark.django_db
@pytest.mark.parametrize(("cpu", "later", "is_written"), [("8", 59, False), ("8", 60, True), ("16", 1, True)])
def test_template_row_is_written_on_change_or_hourly(cpu: str, later: int, is_written: bool) -> None:
    remember({"gpu": a_template()}, MOMENT)
    at = MOMENT + timedelta(minutes=later)
    remember({"gpu": a_template(cpu, at)}, at)
    row = PoolTemplate.objects.get()
    assert row.seen_at == (at if is_written else MOMENT)
    assert row.node["allocatable"]["cpu"] == f"{cpu}000m"


def test_processes_at_once_leave_one_row_of_each_pool(transactional_db: None, tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(20)]
    with database_on_file(tmp_path / "grid.sqlite3"):
        for first, second in (("8", "16"), ("32", "64")):
            work = [
                partial(remember, {name: a_template(cpu) for name in order}, MOMENT)
                for cpu, order in ((first, names), (second, names[::-1]))
            ]
            assert at_once(*work) == []
            assert sorted(pool for pool, *_ in read()) == sorted(names)
            assert {node["allocatable"]["cpu"] for _, node, _, _ in read()} <= {f"{first}000m", f"{second}000m"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name", ["https://content.example.org/zones/a/instanceGroups/" + "x" * 60, "a\\0b", "a\\ud800"]
)
def test_hostile_autoscaler_group_costs_neither_sample_nor_memory(cluster: FakeCluster, name: str) -> None:
    data = {"status": STATUS.replace("default-gpu", f'"{name}"')}
    cluster.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", data, namespace="kube-system"))
    sample(cluster)
    assert [pool for pool, *_ in read()] == ["default"]
    assert set(PoolSample.objects.values_list("pool", flat=True)) == {"*", "", "default", "gpu", "simulated"}


@pytest.mark.django_db
def test_template_reader_sees_writes_of_another_process(cluster: FakeCluster) -> None:
    mine = reader()
    async_to_sync(mine.run_once)()
    assert (mine.version, mine.get("default")) == (0, None)
    sample(cluster)
    async_to_sync(mine.run_once)()
    async_to_sync(mine.run_once)()
    template = mine.get("default")
    assert template is not None
    assert (mine.version, template.shape.free["cpu"]) == (1, 7500)
    assert (mine.nodes, mine.own) == ({"default": template.node}, {"default": {"cpu": 500, "pods": 1}})
    PoolTemplate.objects.all().delete()
    async_to_sync(mine.run_once)()
    assert (mine.version, mine.get("default"), mine.nodes) == (2, None, {})


@pytest.mark.django_db
def test_a_row_that_cannot_be_read_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    remember({"gpu": a_template(), "other": a_template()}, MOMENT)
    PoolTemplate.objects.filter(pool="other").update(node={"labels": 7})
    mine = reader()
    with caplog.at_level(logging.WARNING):
        async_to_sync(mine.run_once)()
    assert (list(mine.nodes), "pool='other'" in caplog.text) == (["gpu"], True)


async def test_empty_pool_has_its_remembered_shapes() -> None:
    cluster = FakeCluster()
    cluster.put(NODES, builders.node("n1", cpu="8"))
    data = {"status": STATUS}
    cluster.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", data, namespace="kube-system"))
    caches = runtime_of(cluster).data_planes[LOCAL]
    seen = a_template("64")
    caches.templates.take({"default": seen, "default-gpu": seen, "gone": seen})
    shapes = await pool_shapes(caches)
    assert list(shapes) == ["default", "default-gpu"]
    assert (shapes["default-gpu"].next, shapes["default-gpu"].seen) == (seen.shape, seen.seen)
    assert shapes["default"].next is None, "its nodes of now decide"
