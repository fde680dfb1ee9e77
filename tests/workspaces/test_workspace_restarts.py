"""Restarting a workspace: stopped now, and resumed by the controller as soon as its pod is gone, once, whatever happens meanwhile."""

from datetime import timedelta

import pytest

from grid.core.errors import Rejected
from grid.executions.stopping import request_stop
from grid.models import Execution, HardwareTier, Membership, Notification, State, Workspace
from grid.usage.budgets.keeper import count
from grid.workspaces.workspaces import cancel_restart, delete, request_restart, resume, resume_restarted
from tests.controller.world import fresh, in_world, running, states_of, to_running
from tests.support.reading import OWNER
from tests.support.shop import NOW, Shop
from tests.usage.budgeting import budget, spend

LATER = NOW + timedelta(minutes=5)


def running_workspace(shop: Shop) -> tuple[Workspace, Execution]:
    execution = shop.launch()
    Execution.objects.filter(pk=execution.pk).update(state=State.RUNNING)
    return Workspace.objects.get(), execution


def settle(execution: Execution) -> None:
    Execution.objects.filter(pk=execution.pk).update(state=State.STOPPED, settled_at=LATER)


@in_world
async def test_controller_resumes_workspace_when_its_pod_is_gone(shop: Shop) -> None:
    world, controller, first = await running(shop)
    request_restart(first.workspace_id or "", by="alice", now=world.now)
    for _ in range(4):
        await world.step(controller)
    assert fresh(first).state == State.STOPPING, "its pod is given time"
    world.behave()
    for _ in range(6):
        world.passes(2)
        await world.step(controller)
        world.behave()
    second = Execution.objects.exclude(pk=first.pk).get()
    assert (states_of(first)[-1], second.workspace_id) == ("stopped", first.workspace_id)
    assert "because it is restarted" in fresh(first).words(OWNER)
    await to_running(world, controller)
    assert fresh(second).state == State.RUNNING
    assert Workspace.objects.get().restart_requested_at is None


def test_asked_for_twice_it_is_restarted_once(shop: Shop) -> None:
    workspace, execution = running_workspace(shop)
    request_restart(workspace.pk, by="alice", now=LATER)
    request_restart(workspace.pk, by="alice", now=LATER + timedelta(seconds=1))
    assert resume_restarted(now=LATER) == [], "its pod is not gone"
    settle(execution)
    assert (len(resume_restarted(now=LATER)), resume_restarted(now=LATER)) == (1, [])
    assert Execution.objects.count() == 2


def test_restart_includes_the_cluster_if_present(shop: Shop) -> None:
    execution, cluster = shop.launch_with_cluster(workers_maximum=4)
    request_stop(cluster, by="alice", now=NOW)
    Execution.objects.filter(pk=execution.pk).update(state=State.RUNNING)
    request_restart(execution.pk, by="alice", now=LATER)
    settle(execution)
    (second,) = resume_restarted(now=LATER)
    assert Execution.objects.filter(attached_to=second).exists()
    request_stop(Execution.objects.get(pk=second), by="alice", now=LATER)
    workspace = Workspace.objects.get()
    third = resume(workspace.pk, environment=workspace.environment, tier=workspace.tier, with_cluster=False, now=LATER)
    Execution.objects.filter(pk=third.pk).update(state=State.RUNNING)
    request_restart(workspace.pk, by="alice", now=LATER)
    settle(third)
    (fourth,) = resume_restarted(now=LATER + timedelta(minutes=1))
    assert not Execution.objects.filter(attached_to=fourth).exists()


def test_unreadable_workspace_delays_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, fine = shop.launch(), shop.launch()
    Execution.objects.update(state=State.RUNNING)
    for execution in (broken, fine):
        request_restart(execution.workspace_id or "", by="alice", now=LATER)
        settle(execution)

    def read(workspace: Workspace) -> bool:
        if workspace.pk == broken.workspace_id:
            raise ValueError("it was stored by an earlier version")
        return False

    monkeypatch.setattr("grid.workspaces.workspaces._had_its_cluster", read)
    (resumed,) = resume_restarted(now=LATER)
    assert Execution.objects.get(pk=resumed).workspace_id == fine.workspace_id
    assert Workspace.objects.get(pk=broken.workspace_id).restart_requested_at is not None, "it is not given up"


def test_ended_or_unstarted_workspace_is_not_restarted(shop: Shop) -> None:
    execution = shop.launch()
    with pytest.raises(Rejected, match="It has not started yet"):
        request_restart(execution.pk, by="alice", now=NOW)
    request_stop(execution, by="alice", now=NOW)
    with pytest.raises(Rejected, match="Resume it instead"):
        request_restart(execution.pk, by="alice", now=NOW)
    assert Workspace.objects.get().restart_requested_at is None


def test_restart_without_launch_right_changes_nothing(shop: Shop) -> None:
    workspace, execution = running_workspace(shop)
    Membership.objects.filter(user=shop.people.owner).update(role="viewer")
    with pytest.raises(Rejected, match="no longer a contributor"):
        request_restart(workspace.pk, by="alice", now=NOW)
    assert fresh(execution).stop_requested_at is None


def test_restart_without_budget_leaves_the_workspace_running(shop: Shop) -> None:
    workspace, execution = running_workspace(shop)
    budget(shop)
    spend(shop, "100")
    count(None, now=NOW)
    with pytest.raises(Rejected, match="has spent"):
        request_restart(workspace.pk, by="alice", now=NOW)
    assert fresh(execution).stop_requested_at is None


def test_unresumable_workspace_stays_stopped_and_says_why(shop: Shop) -> None:
    workspace, execution = running_workspace(shop)
    request_restart(workspace.pk, by="alice", now=LATER)
    HardwareTier.objects.filter(pk="small").update(is_archived=True)
    settle(execution)
    assert resume_restarted(now=LATER) == []
    workspace.refresh_from_db()
    assert workspace.restart_requested_at is None
    assert "tier" in workspace.restart_problem.lower()
    notification = Notification.objects.get()
    assert workspace.restart_problem in notification.sentence
    assert notification.path == f"/workspaces/{workspace.pk}/"
    HardwareTier.objects.filter(pk="small").update(is_archived=False)
    resume(workspace.pk, environment=workspace.environment, tier=workspace.tier, with_cluster=False, now=LATER)
    workspace.refresh_from_db()
    assert workspace.restart_problem == ""


def test_restart_ends_on_cancel_manual_resume_or_deletion(shop: Shop) -> None:
    workspace, execution = running_workspace(shop)
    request_restart(workspace.pk, by="alice", now=LATER)
    assert (cancel_restart(workspace.pk), cancel_restart(workspace.pk)) == (True, False)
    settle(execution)
    assert resume_restarted(now=LATER) == []
    Workspace.objects.update(restart_requested_at=LATER)
    again = resume(workspace.pk, environment=workspace.environment, tier=workspace.tier, with_cluster=False, now=LATER)
    request_stop(again, by="alice", now=LATER)
    assert resume_restarted(now=LATER) == []
    Workspace.objects.update(restart_requested_at=LATER)
    delete(workspace.pk, now=LATER)
    assert resume_restarted(now=LATER) == []
