"""The peak use of executions: measured, added up, written rarely and by one writer, and never in anybody's way."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.db import OperationalError

from grid.core.errors import ClusterUnavailable
from grid.core.labels import APP_COMPONENT, KEYS
from grid.database.seam import Database
from grid.executions.caches import PodCache
from grid.kube.objects import Pod
from grid.kube.resources import NODES
from grid.metrics.usage import Usage
from grid.models import Execution, HardwareTier, PeakUse, Project, State
from grid.runtime import Runtime
from grid.usage.peaks import MEAN_SECONDS, WRITE_SECONDS, Peak, PeakKeeper, read, write
from tests.conftest import People, page_at
from tests.controller.world import in_world
from tests.executions.executing import make_environment, make_execution, make_project, make_tier
from tests.support.builders import MOMENT, NAMESPACE, decode, node, pod
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

GIB = 2**30


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


@pytest.mark.django_db
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


@pytest.mark.django_db
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


@pytest.mark.django_db
@in_world
async def test_a_new_leader_goes_on_from_what_is_stored(execution: Execution) -> None:
    for cpu, memory in ((900, 4.0), (100, 1.0)):
        scene = Scene()
        scene.add(execution.pk)
        await scene.sample(execution.pk, cpu, memory)
    assert stored(execution.pk) == Peak(4 * GIB, 900, 1000, 2)


@pytest.mark.django_db
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


@pytest.mark.django_db
@in_world
async def test_deleted_execution_hinders_no_other_write(execution: Execution) -> None:
    write({"deleted123": Peak(GIB, 1, 1, 1), execution.pk: Peak(2 * GIB, 1, 1, 1)})
    assert list(PeakUse.objects.values_list("pk", flat=True)) == [execution.pk]


@pytest.mark.django_db
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


@pytest.fixture
def project(people: People, cluster: FakeCluster, runtime: Runtime) -> Project:
    cluster.put(NODES, node("n1", cpu="16", memory="64Gi"))
    fill(runtime, cluster)
    make_environment()
    make_tier("small", cores="1", memory="4Gi", cost_per_hour="0.05")
    make_tier("large", cores="4", memory="16Gi", cost_per_hour="0.35", is_default=True)
    make_tier("huge", cores="8", memory="32Gi", cost_per_hour="0.90")
    return make_project(people.owner, people.teammate)


def tier(id: str) -> HardwareTier:
    return HardwareTier.objects.get(pk=id)


def ended(people: People, project: Project, *, memory: float = 3.0, minute: int = 0, **fields: Any) -> Execution:
    values: dict[str, Any] = {"state": State.SUCCEEDED, "kind": "workspace", "tier": tier("large"), **fields}
    at = MOMENT + timedelta(minutes=minute)
    execution = make_execution(people.owner, project, ended_at=at, settled_at=at, **values)
    PeakUse.objects.create(
        execution=execution,
        memory_peak_bytes=int(memory * GIB),
        cpu_peak_millicores=700,
        cpu_sum_millicores=4000,
        samples=20,
    )
    return execution


def page(user: Any, path: str) -> str:
    return " ".join(page_at(user, path).split())


def test_launch_form_tells_of_a_sufficient_smaller_tier(people: People, project: Project) -> None:
    for minute in range(3):
        ended(people, project, minute=minute)
    text = page(people.owner, "/launch/?kind=workspace&tier=large")
    assert (
        "Your last 3 runs with JupyterLab in Customer churn peaked at 3 of 16 GiB and 0.7 of 4 cores: "
        "Small is large enough, and saves $0.30 an hour." in text
    )
    assert '<label class="button" for="tier-small">Choose Small</label>' in text
    assert "would do" not in page(people.teammate, "/launch/?kind=workspace&tier=large")
    assert "would do" not in page(people.owner, "/launch/?kind=workspace&tier=small")


def test_other_titles_and_unmeasured_runs_do_not_count(people: People, project: Project) -> None:
    for minute in range(3):
        ended(people, project, minute=minute, title="Other")
    make_execution(people.owner, project, state=State.SUCCEEDED, ended_at=MOMENT, settled_at=MOMENT)
    assert "would do" not in page(people.owner, "/launch/?kind=workspace&tier=large")


def test_page_of_ended_run_tells_owner_and_observers_peak(people: People, project: Project) -> None:
    for minute in range(3):
        last = ended(people, project, minute=minute)
    path = f"/executions/{last.pk}/"
    peak = "It used at most 3 of 16 GiB and 0.7 of 4 cores (0.2 on average)."
    assert f"{peak} The last 3 runs like this peaked" in page(people.owner, path)
    assert f"/launch/?from={last.pk}&amp;tier=small" in page(people.owner, path)
    assert peak in page(people.operator, path)
    assert "tier=small" not in page(people.operator, path)
    assert "It used at most" not in page(people.teammate, path)


def test_larger_tier_is_a_link_after_out_of_memory(people: People, project: Project) -> None:
    fields: dict[str, Any] = {"state": State.FAILED, "reason": "out_of_memory"}
    failed = ended(people, project, memory=15.9, **fields)
    text = page(people.owner, f"/executions/{failed.pk}/")
    assert "It used 15.9 GiB of its memory limit of 16 GiB, and was stopped there." in text
    assert f'<a href="/launch/?from={failed.pk}&amp;tier=huge">Launch again on Huge (32 GiB)</a>' in text
    largest = ended(people, project, memory=31.9, tier=tier("huge"), **fields)
    text = page(people.owner, f"/executions/{largest.pk}/")
    assert "No tier that is offered for this has more memory. Ask an admin for a larger one" in text
