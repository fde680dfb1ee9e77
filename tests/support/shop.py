"""A project, an environment and a tier to launch with; and what becomes of launches: admitted or refused, and why, as owners read it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

import pytest

from grid.core.reasons import Reader
from grid.executions.launchrequest import ClusterRequest, LaunchRequest
from grid.executions.request import submit
from grid.jobs.scheduler import JobScheduler, look_at_due, run_schedule
from grid.models import ConfigRecord, Environment, Execution, HardwareTier, Project, User
from grid.queue.admission import admit_next, write_refusals
from grid.queue.launches import why_not_launch
from tests.conftest import People

NOW = datetime(2026, 3, 4, 9, 0, 0, tzinfo=UTC)
# `row.words(OWNER)` is the cause of a state as the owner reads it, also of causes that say the same to everybody.
OWNER = Reader("", is_owner=True)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Shop:
    """What there is to launch, and short ways to launch it."""

    people: People
    project: Project
    workspace: Environment
    job: Environment
    cluster: Environment
    tier: HardwareTier

    def request(self, **changes: Any) -> LaunchRequest:
        wanted: dict[str, Any] = {
            "owner": self.people.owner,
            "project": self.project,
            "environment": self.workspace,
            "tier": self.tier,
            "kind": "workspace",
            "title": "Explore",
        }
        return LaunchRequest(**(wanted | changes))

    def cluster_request(self, **changes: Any) -> ClusterRequest:
        wanted: dict[str, Any] = {
            "framework": "dask",
            "environment": self.cluster,
            "head_tier": self.tier,
            "tier": self.tier,
            "workers_minimum": 2,
            "workers_maximum": 5,
            "autoscale": True,
            "target_cpu": 80,
            "target_memory": 0,
            "on_demand": False,
            "local_storage": "",
        }
        return ClusterRequest(**(wanted | changes))

    def launch_cluster(self, *, after: float = 0, **changes: Any) -> Execution:
        """Alone; `changes` are the cluster's."""
        cluster = self.cluster_request(**changes)
        return self.launch(kind="cluster", environment=self.cluster, cluster=cluster, after=after)

    def launch_with_cluster(self, *, after: float = 0, **changes: Any) -> tuple[Execution, Execution]:
        """A workspace and its cluster."""
        workspace = self.launch(cluster=self.cluster_request(**changes), after=after)
        return workspace, Execution.objects.get(attached_to=workspace)

    def launch(self, owner: User | None = None, *, after: float = 0, **changes: Any) -> Execution:
        request = self.request(owner=owner or self.people.owner, **changes)
        return submit(request, gate=why_not_launch, now=NOW + timedelta(seconds=after))


@pytest.fixture
def shop(people: People) -> Shop:
    return make_shop(people)


def make_shop(people: People) -> Shop:
    project = Project.objects.start(id="churn", name="Churn", owner=people.owner)
    project.members.add(people.teammate, through_defaults={"role": "contributor"})
    return Shop(
        people=people,
        project=project,
        workspace=Environment.objects.create(
            id="jupyterlab",
            name="JupyterLab",
            image="compute-grid/jupyterlab:4.6",
            port=8888,
            command=["jupyter", "lab", "--ip=$(POD_IP)", "--port={port}", "--ServerApp.base_url={base_url}"],
        ),
        job=Environment.objects.create(
            id="script", name="Script", kind="job", image="python:3.11", command=["python", "train.py"]
        ),
        cluster=Environment.objects.create(
            id="dask-cluster",
            name="Dask cluster",
            kind="cluster",
            image="compute-grid/dask:2026.8",
            frameworks={"dask": "2026.8.0"},
        ),
        tier=HardwareTier.objects.create(
            id="small", name="Small", node_pool="default", cores="1", memory="4Gi", cost_per_hour="0.05"
        ),
    )


@pytest.fixture
def worker_tier(shop: Shop) -> HardwareTier:
    return HardwareTier.objects.create(
        id="worker", name="Worker", node_pool="default", cores="2", memory="8Gi", cost_per_hour="0.10"
    )


@pytest.fixture
def configure(db: None) -> Callable[..., None]:
    def set_value(setting: Any, value: int) -> None:
        ConfigRecord.objects.update_or_create(key=setting.key, defaults={"value": str(value)})

    return set_value


def admit_waiting(data_plane: str, *, now: datetime) -> Sequence[str]:
    """Admit executions to the data plane, write why the others wait, and return the ids of the admitted ones."""
    admission = admit_next(data_plane, now=now)
    write_refusals(admission.refusals, now=now)
    return list(admission.admitted)


def run_due(*, now: datetime) -> None:
    for due in look_at_due(now).due:
        run_schedule(due.id, now=now)


async def inline(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    return work(*args, **kwargs)


def job_scheduler(clock: Callable[[], datetime]) -> JobScheduler:
    return JobScheduler(inline, clock)
