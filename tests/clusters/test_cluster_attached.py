"""A cluster that belongs to a workspace: launched, resumed and ended with it."""

import re
from typing import Any

import pytest

from grid import configuration
from grid.clusters.manifests import head_name
from grid.configuration import DEPLOYING_TIMEOUT, MAXIMUM_EXECUTIONS_PER_USER, OVER_QUOTA_TIMEOUT, PREPARING_TIMEOUT
from grid.controller.controller import Controller
from grid.core.errors import ClusterUnavailable, NotAllowed
from grid.executions.stopping import request_stop
from grid.kube.objects import RawObject
from grid.kube.resources import PODS, SERVICES
from grid.models import ConfigRecord, Environment, Execution, HardwareTier, StartUp, State, Workspace
from tests.clusters.test_cluster_life import Configure, left, notes, the, to_end
from tests.conftest import People, client_of
from tests.controller.world import World, fresh, in_world, states_of
from tests.executions.executing import ATTACHED, make_execution, offer_clusters
from tests.support.builders import MOMENT, NAMESPACE
from tests.support.shop import OWNER, Shop
from tests.support.virtual import loop_time, passes
from tests.workspaces.workspaces import page, resume


async def both_running(world: World, controller: Any, *pair: Execution) -> None:
    for _ in range(10):
        await world.step(controller)
        if all(fresh(execution).state == "running" for execution in pair):
            return
        world.behave()
        await passes(2)
    raise AssertionError([states_of(execution) for execution in pair])


def queued_pair(shop: Shop, **settings: Any) -> tuple[World, Controller, Execution, Execution]:
    """A world, its controller with these settings, and a workspace with a cluster that are queued in it."""
    world = World()
    return world, world.controller(**settings), *shop.launch_with_cluster()


def variables(pod: RawObject) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in pod["spec"]["containers"][0]["env"]}


@in_world
async def test_workspace_is_created_with_the_address_of_its_head(shop: Shop) -> None:
    world, controller, workspace, cluster = queued_pair(shop)
    await both_running(world, controller, workspace, cluster)
    address = the(world, SERVICES, head_name(cluster.pk))["spec"]["clusterIP"]
    assert variables(world.pod_of(workspace))["DASK_SCHEDULER_ADDRESS"].startswith(f"tcp://{address}:")
    assert len(world.members(cluster, "worker")) == 2


@in_world
async def test_the_workspace_waits_for_the_address_and_says_so(shop: Shop) -> None:
    world, controller, workspace, cluster = queued_pair(shop)
    world.cluster.fail_next(ClusterUnavailable("gone"), times=1, verb="create")
    await world.step(controller)
    assert world.cluster.count("create", PODS) == 0
    assert fresh(workspace).state == "deploying"
    assert fresh(workspace).words(OWNER) == "Waiting for its cluster's address; it starts by itself."
    await passes(3)
    await both_running(world, controller, workspace, cluster)


@in_world
async def test_missing_address_ends_cluster_while_workspace_goes_on(shop: Shop, configure: Configure) -> None:
    world, controller, workspace, cluster = queued_pair(shop)
    world.cluster.gives_addresses = False
    await world.step(controller)
    assert fresh(cluster).words(OWNER) == "Waiting for the address of its head, which the cluster assigns."
    configure(DEPLOYING_TIMEOUT, 90)
    world.passes(91)
    for _ in range(4):
        await passes(3)
        await world.step(controller)
        world.behave()
    await world.step(controller)
    assert (fresh(cluster).state, cluster.reason) == ("error", "waiting")
    assert fresh(cluster).words(OWNER) == (
        "Gave up after 90 seconds. Last known: Waiting for the address of its head, which the cluster assigns."
    )
    assert fresh(workspace).state == "running"
    (line,) = notes(workspace, "WithoutCluster")
    assert (line.level, line.source) == ("Warning", "kubernetes")
    assert line.words(OWNER).startswith(
        f"Its cluster has failed, and it continues without a cluster. The cluster: {cluster.words(OWNER)}"
    )
    request_stop(workspace, by="alice", now=world.now)
    await to_end(world, controller, workspace)
    assert left(world) == []


@in_world
async def test_workspace_comes_up_alone_when_its_cluster_has_ended(shop: Shop) -> None:
    world, controller, workspace, cluster = queued_pair(shop)
    world.cluster.fail_next(ClusterUnavailable("gone"), times=1, verb="create")
    await world.step(controller)
    request_stop(cluster, by="alice", now=world.now)
    for _ in range(8):
        await passes(6)
        await world.step(controller)
        world.behave()
    assert (fresh(cluster).state, fresh(workspace).state) == ("stopped", "running")
    assert "DASK_SCHEDULER_ADDRESS" not in variables(world.pod_of(workspace))
    (line,) = notes(workspace, "WithoutCluster")
    assert line.words(OWNER) == "alice stopped its cluster; it continues without a cluster."


async def pair_of_a_job(world: World, shop: Shop) -> tuple[Execution, Execution, Any]:
    """A job that waits for its cluster, which no node takes."""
    job = shop.launch(kind="job", environment=shop.job, cluster=shop.cluster_request())
    cluster, controller = Execution.objects.get(attached_to=job), world.controller(monotonic=loop_time)
    await world.step(controller)
    world.deployments.round()
    await passes(3)
    await world.step(controller)
    assert (fresh(job).state, fresh(cluster).state) == ("deploying", "deploying")
    return job, cluster, controller


async def rounds(world: World, controller: Any, number: int) -> None:
    for _ in range(number):
        await passes(3)
        await world.step(controller)


@in_world
async def test_job_ends_with_the_reason_of_its_failed_cluster(shop: Shop, configure: Configure) -> None:
    world = World()
    job, cluster, controller = await pair_of_a_job(world, shop)
    configure(DEPLOYING_TIMEOUT, 90)
    world.passes(91)
    await rounds(world, controller, 4)
    assert (fresh(cluster).state, cluster.reason) == ("error", "deploying_timeout")
    assert (fresh(job).state, job.reason) == ("error", "cluster_failed")
    assert job.words(OWNER).startswith(
        "It was not started, because its cluster did not come up. The cluster: No node took the head"
    )
    assert job.words(OWNER).endswith(" Launch both again.")
    start = StartUp.objects.get(execution_id=job)
    assert (start.creating, start.cluster_wait) == (None, start.total - (start.queued or 0))
    assert world.cluster.count("create", PODS) == 0
    assert notes(job, "WithoutCluster") == []
    for execution in (job, cluster):
        await to_end(world, controller, execution)
    assert left(world) == []


@in_world
async def test_job_whose_cluster_was_stopped_starts_without_it(shop: Shop) -> None:
    world = World()
    job, cluster, controller = await pair_of_a_job(world, shop)
    request_stop(cluster, by="alice", now=world.now)
    await rounds(world, controller, 2)
    assert "DASK_SCHEDULER_ADDRESS" not in variables(world.pod_of(job))
    (line,) = notes(job, "WithoutCluster")
    assert line.words(OWNER) == "alice stopped its cluster; it continues without a cluster."


@in_world
async def test_job_waits_for_its_cluster_before_its_clock_starts(shop: Shop, configure: Configure) -> None:
    world = World()
    configure(DEPLOYING_TIMEOUT, 90)
    configure(PREPARING_TIMEOUT, 300)
    job, cluster, controller = await pair_of_a_job(world, shop)
    world.passes(80)
    world.schedule(world.head_of(cluster))
    await rounds(world, controller, 2)
    assert fresh(cluster).state == "preparing"
    world.passes(250)
    await rounds(world, controller, 2)
    assert (fresh(cluster).state, fresh(job).state) == ("preparing", "deploying")
    assert job.words(OWNER).startswith("Waiting for its cluster; it starts by itself when the cluster runs.")
    assert cluster.words(OWNER) in job.words(OWNER)
    for pod in world.members(cluster, "head") + world.workers_of(cluster):
        world.start(pod)
    await rounds(world, controller, 3)
    assert (fresh(cluster).state, fresh(job).state) == ("running", "deploying")
    assert "DASK_SCHEDULER_ADDRESS" in variables(world.pod_of(job))
    world.passes(80)
    await rounds(world, controller, 2)
    assert fresh(job).state == "deploying", "the time for finding a node began when the wait was over"
    world.passes(20)
    await rounds(world, controller, 2)
    assert (fresh(job).state, job.reason) == ("error", "deploying_timeout")


@in_world
async def test_refused_job_is_retried_after_its_long_wait(shop: Shop, configure: Configure) -> None:
    world = World()
    configure(DEPLOYING_TIMEOUT, 90)
    job, cluster, controller = await pair_of_a_job(world, shop)
    world.schedule(world.head_of(cluster))
    world.passes(100)
    for pod in world.members(cluster, "head") + world.workers_of(cluster):
        world.start(pod)
    world.cluster.fail_next(NotAllowed("exceeded quota"), times=1, verb="create")
    await rounds(world, controller, 2)
    assert (fresh(job).state, job.reason) == ("deploying", "not_allowed")
    await passes(12)
    await rounds(world, controller, 2)
    assert (fresh(job).state, job.reason) == ("deploying", "created")


@pytest.mark.parametrize("how", ["stopped", "shut down", "pod gone"])
@in_world
async def test_the_cluster_ends_with_its_workspace(shop: Shop, how: str) -> None:
    world, controller, workspace, cluster = queued_pair(shop)
    await both_running(world, controller, workspace, cluster)
    if how == "stopped":
        request_stop(workspace, by="alice", now=world.now)
    elif how == "shut down":
        world.finish(world.pod_of(workspace), 0)
    else:
        world.cluster.remove(PODS, workspace.object_name, namespace=NAMESPACE)
    await to_end(world, controller, workspace)
    await to_end(world, controller, cluster)
    assert (fresh(cluster).state, cluster.stop_requested_by) == ("stopped", "its workspace")
    assert cluster.words(OWNER).startswith("Stopped with its workspace.")
    assert states_of(cluster)[-2:] == ["stopping", "stopped"]
    assert left(world) == []


@in_world
async def test_cluster_of_never_started_workspace_is_not_forgotten(shop: Shop, configure: Configure) -> None:
    """The workspace holds no slots and is over at once, so nobody looks at it again."""
    world = World()
    workspace, cluster = shop.launch_with_cluster()
    configure(OVER_QUOTA_TIMEOUT, 90)
    Execution.objects.filter(pk=workspace.pk).update(state="error")
    await world.step(world.controller())
    assert fresh(cluster).state == "stopped"
    assert world.cluster.count("create") == 0


def stop_all() -> None:
    Execution.objects.update(state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT)


@pytest.fixture
def workspace(people: People) -> Workspace:
    """Launched with a cluster, and stopped."""
    offer_clusters(people)
    client_of(people.owner).post("/launch/", ATTACHED)
    stop_all()
    return Workspace.objects.get()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
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


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
def test_cluster_restart_says_its_needs_and_what_misfits(people: People, workspace: Workspace) -> None:
    path = f"/workspaces/{workspace.pk}/resume/"
    shown = page(people.owner, path)
    assert "Small: 1 core, 4 GiB, $0.05 an hour" in shown
    assert "$0.24 an hour with 1 worker, $1.00 an hour with 5 workers" in shown
    assert "Together they take 7 slots." in shown
    assert "different versions" not in shown
    ConfigRecord.objects.create(namespace=configuration.NAMESPACE, key=MAXIMUM_EXECUTIONS_PER_USER.key, value="7")
    make_execution(people.owner, workspace.project, slots_reserved_at=MOMENT)
    Environment.objects.filter(pk="jupyterlab").update(frameworks={"dask": "2025.1.0"})
    shown = page(people.owner, path)
    assert "Together they take 7 slots; you have 6 free, so they wait until 7 are free." in shown
    assert "has Dask 2025.1.0 and the cluster would have 2026.8.0" in shown
