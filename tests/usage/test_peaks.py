"""The peak use of executions: measured, added up, written rarely and by one writer, and never in anybody's way."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from django.db import OperationalError

from grid.core.errors import ClusterUnavailable
from grid.core.labels import APP_COMPONENT, KEYS
from grid.database.seam import Database
from grid.executions.caches import PodCache
from grid.kube.objects import Pod
from grid.metrics.usage import Usage
from grid.models import Execution, PeakUse
from grid.usage.peaks import MEAN_SECONDS, WRITE_SECONDS, Peak, PeakKeeper, read, write
from tests.conftest import People
from tests.controller.world import in_world
from tests.executions.executing import make_execution, make_project
from tests.support.builders import NAMESPACE, decode, pod

GIB = 2**30
pytestmark = pytest.mark.django_db


class Scene:
    """A keeper whose clock, source and database a test moves. `writes` are the executions of each write."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.measured: dict[str, Usage] | None = {}
        self.writes: list[set[str]] = []
        self.is_away = False
        self.pods = PodCache(lambda id: None, lambda: datetime.now(UTC))
        self.keeper = PeakKeeper(self, self.pods, cast("Database", self.run), NAMESPACE, monotonic=lambda: self.seconds)

    async def measure_pods(self, namespace: str) -> Mapping[str, Usage]:
        assert namespace == NAMESPACE
        if self.measured is None:
            raise ClusterUnavailable("no answer")
        return self.measured

    async def run(self, work: Callable[..., Any], /, *args: Any) -> Any:
        if self.is_away:
            raise OperationalError("away")
        if work is write:
            self.writes.append(set(args[0]))
        return work(*args)

    def add(self, id: str, component: str = "job") -> str:
        labels = {KEYS.execution: id, APP_COMPONENT: component}
        self.pods.apply(decode(pod(f"job-{id}", labels=labels, node="n", phase="Running"), Pod))
        return f"{NAMESPACE}/job-{id}"

    async def sample(self, id: str, cpu: int, gibibytes: float, *, after: float = 15) -> None:
        self.seconds += after
        self.measured = {f"{NAMESPACE}/job-{id}": Usage(cpu, int(gibibytes * GIB))}
        await self.keeper.run_once()


@pytest.fixture
def execution(people: People) -> Execution:
    return make_execution(people.owner, make_project(people.owner), kind="job")


def stored(id: str) -> Peak:
    return read([id])[id]


@in_world
async def test_peaks_and_mean_are_stored_when_pod_is_gone(execution: Execution) -> None:
    scene, id = Scene(), execution.pk
    key = scene.add(id)
    for cpu, memory in ((500, 1.0), (2000, 2.0), (200, 3.0), (100, 1.0)):
        await scene.sample(id, cpu, memory)
    scene.pods.discard(key)
    scene.measured = {}
    await scene.keeper.run_once()
    assert stored(id) == Peak(3 * GIB, 2000, 2800, 4)
    assert PeakUse.objects.get().cpu_mean_millicores == 700
    written = len(scene.writes)
    await scene.keeper.run_once()
    assert len(scene.writes) == written


@in_world
async def test_new_peak_is_written_once_a_minute(execution: Execution) -> None:
    scene, id = Scene(), execution.pk
    scene.add(id)
    await scene.sample(id, 100, 1.0)
    assert len(scene.writes) == 1
    for step in range(1, 4):
        await scene.sample(id, 100, 1.0 + step)
    assert len(scene.writes) == 1
    await scene.sample(id, 100, 5.0)
    assert (len(scene.writes), stored(id).memory) == (2, 5 * GIB)
    for _ in range(int((MEAN_SECONDS - WRITE_SECONDS) / 15)):
        await scene.sample(id, 100, 5.1)  # hardly more
    assert len(scene.writes) == 2
    await scene.sample(id, 100, 5.0, after=WRITE_SECONDS)
    assert len(scene.writes) == 3
    assert stored(id).samples == PeakUse.objects.get().samples > 30


@in_world
async def test_a_new_leader_goes_on_from_what_is_stored(execution: Execution) -> None:
    for cpu, memory in ((900, 4.0), (100, 1.0)):
        scene = Scene()
        scene.add(execution.pk)
        await scene.sample(execution.pk, cpu, memory)
    assert stored(execution.pk) == Peak(4 * GIB, 900, 1000, 2)


@in_world
async def test_measurements_wait_for_an_unavailable_database(execution: Execution) -> None:
    scene, id = Scene(), execution.pk
    scene.add(id)
    scene.is_away = True
    with suppress(OperationalError):
        await scene.sample(id, 900, 4.0)
    scene.is_away = False
    await scene.sample(id, 100, 1.0)
    assert stored(id) == Peak(4 * GIB, 900, 1000, 2)


@in_world
async def test_deleted_execution_hinders_no_other_write(execution: Execution) -> None:
    write({"deleted123": Peak(GIB, 1, 1, 1), execution.pk: Peak(2 * GIB, 1, 1, 1)})
    assert list(PeakUse.objects.values_list("pk", flat=True)) == [execution.pk]


@in_world
async def test_pods_of_clusters_and_unknown_executions_are_omitted(execution: Execution) -> None:
    scene = Scene()
    scene.add(execution.pk, component="worker")
    await scene.sample(execution.pk, 900, 4.0)
    assert scene.writes == []
    scene.add("unknown123")
    await scene.sample("unknown123", 900, 4.0)
    assert scene.writes == []
    assert not PeakUse.objects.exists()
