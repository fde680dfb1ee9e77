"""Rows for executions that are only simulated, read from their pods."""

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone
from pytest_django.fixtures import Settings

from grid.core.labels import KEYS, NODE_POOL
from grid.executions.launch_choices import environments_for, tiers_for
from grid.executions.spec import parse_spec
from grid.kube.objects import Pod
from grid.management.simulated import record_simulated
from grid.models import Execution, HardwareTier, Membership, Project, State, User
from grid.models.dataplane import LOCAL
from grid.projects import departures
from tests.support.builders import decode, pod

pytestmark = pytest.mark.django_db


def simulated_pod(
    id: str, kind: str = "workspace", *, name: str = "", component: str = "", user: str = "amara-1", **changes: Any
) -> Pod:
    labels = {
        "app.kubernetes.io/name": "dask-cluster" if kind == "cluster" else "jupyterlab",
        "app.kubernetes.io/component": component or kind,
        KEYS.workload_type: kind,
        KEYS.tier: "cpu-small",
        KEYS.project: "churn-1",
        KEYS.user: user,
        KEYS.execution: id,
    }
    image = "compute-grid/dask:2026.8" if kind == "cluster" else "compute-grid/jupyterlab:4.6"
    asked = {"cpu": "1000m", "memory": "4096Mi"}
    containers = [{"name": "run", "image": image, "resources": {"requests": asked, "limits": asked}}]
    spec = {"nodeSelector": {NODE_POOL: "cpu"}}
    made = pod(name or f"{kind}-{id}", labels=labels, containers=containers, spec=spec, **{"node": "cpu-1", **changes})
    return decode(made, Pod)


def record(*pods: Pod, with_clusters: bool = False) -> int:
    return record_simulated(pods, with_clusters=with_clusters, now=timezone.now())


def test_simulated_execution_gets_a_row_matching_its_pod() -> None:
    assert (
        record(
            simulated_pod("aaaaaaaaaa", ready=True), simulated_pod("bbbbbbbbbb"), simulated_pod("cccccccccc", node="")
        )
        == 3
    )
    states = dict(Execution.objects.values_list("pk", "state"))
    assert states == {"aaaaaaaaaa": State.RUNNING, "bbbbbbbbbb": State.PREPARING, "cccccccccc": State.DEPLOYING}
    execution = Execution.objects.get(pk="aaaaaaaaaa")
    assert (execution.owner.username, execution.project_id, execution.tier.node_pool) == ("amara-1", "churn-1", "cpu")
    assert parse_spec(execution).object_name == "workspace-aaaaaaaaaa"


def test_a_second_time_only_what_is_new_is_made() -> None:
    assert record(simulated_pod("aaaaaaaaaa")) == 1
    assert record(simulated_pod("aaaaaaaaaa"), simulated_pod("bbbbbbbbbb", user="bilal-2")) == 1
    assert (Execution.objects.count(), Project.objects.count(), HardwareTier.objects.count()) == (2, 1, 1)


def test_simulated_owners_are_members_who_cannot_log_in() -> None:
    record(simulated_pod("aaaaaaaaaa"), simulated_pod("bbbbbbbbbb", user="bilal-2"))
    roles = dict(Membership.objects.values_list("user__username", "role"))
    assert roles == {"amara-1": "owner", "bilal-2": "contributor"}
    assert departures.stop_departed(LOCAL, now=timezone.now()) == []
    assert not User.objects.get(username="amara-1").has_usable_password()


def test_nobody_is_offered_what_only_played_executions_run_on() -> None:
    record(simulated_pod("aaaaaaaaaa"))
    user = User.objects.get(username="amara-1")
    assert (list(tiers_for(user, "workspace")), list(environments_for(user, "workspace"))) == ([], [])


def test_simulated_cluster_is_recorded_on_demand_with_all_slots() -> None:
    pods = [
        simulated_pod("dddddddddd", "cluster", name="w1", component="worker"),
        simulated_pod("dddddddddd", "cluster", name="w2", component="worker"),
    ]
    pods.append(simulated_pod("dddddddddd", "cluster", name="h", component="head", ready=True))
    assert record(*pods) == 0
    assert record(*pods, with_clusters=True) == 1
    execution = Execution.objects.get()
    assert (execution.slots, execution.state) == (3, State.RUNNING)
    cluster = parse_spec(execution).cluster
    assert cluster is not None
    assert (cluster.framework, cluster.workers_maximum) == ("dask", 2)


def test_simulated_recording_is_refused_outside_the_demonstration(settings: Settings) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="only with GRID_DEMO"):
        call_command("record_simulated")
