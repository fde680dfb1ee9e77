"""Resuming a workspace with the cluster that it was launched with: what that takes, what keeps it from starting, and leaving it out."""

import re

import pytest

from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, NAMESPACE
from grid.models import ConfigRecord, Environment, Execution, HardwareTier, State, Workspace
from tests.conftest import People, client_of
from tests.executions.executing import ATTACHED, make_execution, offer_clusters
from tests.support.builders import MOMENT
from tests.workspaces.workspaces import page, resume

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]


def stop_all() -> None:
    Execution.objects.update(state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT)


@pytest.fixture
def workspace(people: People) -> Workspace:
    """Launched with a cluster, and stopped."""
    offer_clusters(people)
    client_of(people.owner).post("/launch/", ATTACHED)
    stop_all()
    return Workspace.objects.get()


def test_its_cluster_is_attached_again_or_left_out(people: People, workspace: Workspace) -> None:
    first = Execution.objects.get(kind="workspace")
    shown = page(people.owner, f"/workspaces/{workspace.pk}/resume/")
    assert "Dask, 1 to 5 workers, as it was launched." in shown
    assert re.search('id="id_with_cluster" checked', shown)
    assert resume(people.owner, workspace, with_cluster="on")[0] == 302
    assert Execution.objects.unsettled().filter(kind="cluster").exclude(attached_to=first).count() == 1
    stop_all()
    HardwareTier.objects.filter(pk="medium").update(is_archived=True)
    Environment.objects.filter(pk="dask-cluster").update(is_archived=True)
    shown = page(people.owner, f"/workspaces/{workspace.pk}/resume/")
    assert re.search("environment is no longer available.*tier is no longer available.*Resume it without", shown)
    Environment.objects.update(is_archived=False)
    shown = page(people.owner, f"/workspaces/{workspace.pk}/resume/")
    assert "Its cluster cannot start as it was: This hardware tier is no longer available" in shown
    assert not re.search('id="id_with_cluster" checked', shown)
    status, refusal = resume(people.owner, workspace, with_cluster="on")
    assert status == 422
    assert re.search(r'id="id_with_cluster_error"><p>This hardware tier is no longer available', refusal)
    assert resume(people.owner, workspace)[0] == 302
    assert not Execution.objects.unsettled().filter(kind="cluster").exists()


def test_cluster_restart_says_its_needs_and_what_misfits(people: People, workspace: Workspace) -> None:
    path = f"/workspaces/{workspace.pk}/resume/"
    shown = page(people.owner, path)
    assert "Small: 1 core, 4 GiB, $0.05 an hour" in shown
    assert "$0.24 an hour with 1 worker, $1.00 an hour with 5 workers" in shown
    assert "Together they take 7 slots." in shown
    assert "different versions" not in shown
    ConfigRecord.objects.create(namespace=NAMESPACE, key=MAXIMUM_EXECUTIONS_PER_USER.key, value="7")
    make_execution(people.owner, workspace.project, slots_reserved_at=MOMENT)
    Environment.objects.filter(pk="jupyterlab").update(frameworks={"dask": "2025.1.0"})
    shown = page(people.owner, path)
    assert "Together they take 7 slots; you have 6 free, so they wait until 7 are free." in shown
    assert "has Dask 2025.1.0 and the cluster would have 2026.8.0" in shown
