"""Rows for executions that are only simulated, read from their pods."""

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone
from pytest_django.fixtures import Settings

from grid.core.labels import KEYS, NODE_POOL
from grid.executions.spec import parse_spec
from grid.kube.objects import Pod
from grid.management.commands.record_simulated import record_simulated
from grid.models import Execution, Membership, State, User
from grid.models.dataplane import LOCAL
from grid.projects import departures
from tests.support.builders import decode, pod

pytestmark = pytest.mark.django_db


def simulated_pod(id: str, *, user: str = "amara-1", **changes: Any) -> Pod:
    labels = {
        "app.kubernetes.io/name": "jupyterlab",
        "app.kubernetes.io/component": "workspace",
        KEYS.workload_type: "workspace",
        KEYS.tier: "cpu-small",
        KEYS.project: "churn-1",
        KEYS.user: user,
        KEYS.execution: id,
    }
    asked = {"cpu": "1000m", "memory": "4096Mi"}
    containers = [
        {"name": "run", "image": "compute-grid/jupyterlab:4.6", "resources": {"requests": asked, "limits": asked}}
    ]
    spec = {"nodeSelector": {NODE_POOL: "cpu"}}
    made = pod(f"workspace-{id}", labels=labels, containers=containers, spec=spec, **{"node": "cpu-1", **changes})
    return decode(made, Pod)


def record(*pods: Pod) -> int:
    return record_simulated(pods, with_clusters=False, now=timezone.now())


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


def test_simulated_owners_are_members_who_cannot_log_in() -> None:
    record(simulated_pod("aaaaaaaaaa"), simulated_pod("bbbbbbbbbb", user="bilal-2"))
    roles = dict(Membership.objects.values_list("user__username", "role"))
    assert roles == {"amara-1": "owner", "bilal-2": "contributor"}
    assert departures.stop_departed(LOCAL, now=timezone.now()) == []
    assert not User.objects.get(username="amara-1").has_usable_password()


def test_simulated_recording_is_refused_outside_the_demonstration(settings: Settings) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="only with GRID_DEMO"):
        call_command("record_simulated")
