"""Workspaces: made with their first launch, resumed as they were, one execution at a time; renamed and deleted while they are stopped;
restarted by the controller as soon as their pod is gone, once, whatever happens meanwhile."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from grid.core.errors import Rejected
from grid.executions.stopping import request_stop
from grid.models import Environment, Execution, HardwareTier, Membership, Notification, State, Workspace
from grid.workspaces.workspaces import (
    cancel_restart,
    delete,
    problems_as_launched,
    rename,
    request_restart,
    resume,
    resume_restarted,
    why_not_resume,
)
from tests.controller.world import fresh, in_world, running, states_of, to_running
from tests.support.shop import NOW, OWNER, Shop
from tests.usage.budgeting import use_up

LATER = NOW + timedelta(hours=1)


def stopped(shop: Shop, **changes: Any) -> Workspace:
    """Launched, stopped while it queued, and so settled at once."""
    execution = shop.launch(**changes)
    request_stop(execution, by="alice", now=NOW)
    return Workspace.objects.get(pk=execution.workspace_id)


def resumed(workspace: Workspace, **changes: Any) -> Execution:
    wanted: dict[str, Any] = {"environment": workspace.environment, "tier": workspace.tier}
    return resume(workspace.pk, **{**wanted, "with_cluster": True, "now": LATER, **changes})


def refusal(work: Callable[..., object], *args: object, **options: Any) -> tuple[str, str]:
    """Return where and why it is refused."""
    with pytest.raises(Rejected) as refused:
        work(*args, **options)
    (problem,) = refused.value.problems
    return problem.path, problem.code


def test_launching_a_workspace_makes_it_with_its_first_execution(shop: Shop) -> None:
    execution = shop.launch(title=" Explore ")
    workspace = Workspace.objects.get()
    assert (execution.workspace_id, workspace.pk) == (workspace.pk, execution.pk)
    assert (workspace.owner, workspace.project, workspace.title) == (shop.people.owner, shop.project, "Explore")
    assert (workspace.environment, workspace.tier, workspace.cluster) == (shop.workspace, shop.tier, None)
    assert (workspace.created_at, workspace.launched_at) == (NOW, NOW)


def test_a_job_and_a_cluster_are_no_workspaces(shop: Shop) -> None:
    shop.launch(kind="job", environment=shop.job)
    shop.launch_cluster(after=1)
    assert not Workspace.objects.exists()
    with pytest.raises(IntegrityError), transaction.atomic():
        Execution.objects.filter(kind="job").update(workspace=stopped(shop))


def test_resumed_workspace_is_new_execution_with_same_files(shop: Shop) -> None:
    workspace = stopped(shop)
    first, second = Execution.objects.get(), resumed(workspace)
    assert (second.pk != first.pk, second.workspace, second.state) == (True, workspace, State.QUEUED)
    assert (second.owner, second.title, second.requested_at) == (shop.people.owner, "Explore", LATER)
    second.refresh_from_db()
    for part in ("home", "project", "tier", "environment", "workspace"):
        assert second.spec[part] == first.spec[part]
    assert second.spec["workspace"] == workspace.pk, "JupyterLab's layout is found again"
    workspace.refresh_from_db()
    assert workspace.launched_at == LATER


def test_workspace_resumes_with_its_cluster_or_without(shop: Shop) -> None:
    execution, cluster = shop.launch_with_cluster(workers_maximum=4)
    request_stop(execution, by="alice", now=NOW)
    workspace = Workspace.objects.get()
    first = resumed(workspace)
    again = Execution.objects.get(attached_to=first)
    assert again.spec["cluster"] == cluster.spec["cluster"] | {"attached_to": first.pk}
    assert (again.workspace, again.slots) == (None, cluster.slots)
    request_stop(first, by="alice", now=LATER)
    assert not resumed(workspace, with_cluster=False).attached.exists()


def test_resume_uses_current_tier_and_remembers_the_chosen(shop: Shop) -> None:
    workspace = stopped(shop)
    HardwareTier.objects.filter(pk="small").update(memory="8Gi")
    large = HardwareTier.objects.create(id="large", name="Large", node_pool="default", cores="7", memory="28Gi")
    execution = resumed(workspace)
    assert execution.spec["tier"]["memory"] == "8Gi"
    request_stop(execution, by="alice", now=LATER)
    resumed(workspace, tier=large)
    workspace.refresh_from_db()
    assert workspace.tier == large


def test_archived_tier_and_environment_are_refused_with_other_choice(shop: Shop) -> None:
    workspace = stopped(shop)
    HardwareTier.objects.filter(pk="small").update(is_archived=True)
    Environment.objects.filter(pk="jupyterlab").update(is_visible=False)
    expected = [("environment", "not_offered"), ("tier", "not_offered")]
    assert [(problem.path, problem.code) for problem in problems_as_launched(workspace)] == expected
    with pytest.raises(Rejected) as refused:
        resumed(workspace)
    assert [(problem.path, problem.code) for problem in refused.value.problems] == expected
    Environment.objects.filter(pk="jupyterlab").update(is_visible=True)
    other = HardwareTier.objects.create(id="other", name="Other", node_pool="default", cores="1", memory="4Gi")
    assert resumed(workspace, tier=other).tier == other


def test_cluster_with_missing_tier_is_reported_and_optional(shop: Shop, worker_tier: HardwareTier) -> None:
    execution, _ = shop.launch_with_cluster(tier=worker_tier)
    request_stop(execution, by="alice", now=NOW)
    workspace = Workspace.objects.get()
    HardwareTier.objects.filter(pk=worker_tier.pk).update(is_archived=True)
    assert refusal(resumed, workspace) == ("worker_tier", "not_offered")
    Execution.objects.filter(kind="cluster").delete()
    worker_tier.delete()
    assert [problem.path for problem in problems_as_launched(workspace)] == ["with_cluster"]
    assert resumed(workspace, with_cluster=False).state == State.QUEUED


def test_cluster_of_another_release_is_read_or_reported(shop: Shop) -> None:
    execution, _ = shop.launch_with_cluster()
    request_stop(execution, by="alice", now=NOW)
    workspace = Workspace.objects.get()
    stored = workspace.cluster
    assert stored is not None
    workspace.cluster = {name: value for name, value in stored.items() if name != "local_storage"} | {"newer": 1}
    assert problems_as_launched(workspace) == []
    for broken in ({"framework": "dask"}, stored | {"workers_minimum": "many"}, [1]):
        workspace.cluster = broken
        workspace.save()
        (problem,) = problems_as_launched(workspace)
        assert (problem.path, problem.code) == ("with_cluster", "unreadable")
        assert refusal(resumed, workspace) == ("with_cluster", "unreadable")
    assert resumed(workspace, with_cluster=False).state == State.QUEUED


def test_newest_execution_is_latest_launched_despite_slow_clock(shop: Shop) -> None:
    workspace = stopped(shop)
    execution = resumed(workspace, now=NOW - timedelta(minutes=1))
    workspace.refresh_from_db()
    assert execution.requested_at == workspace.launched_at == NOW + timedelta(microseconds=1)
    assert workspace.executions.order_by("-requested_at").first() == execution


def test_workspace_is_not_resumed_while_it_or_pod_lives(shop: Shop) -> None:
    execution = shop.launch()
    workspace = Workspace.objects.get()
    assert refusal(resumed, workspace) == ("", "active")
    Execution.objects.filter(pk=execution.pk).update(state=State.STOPPING)
    assert refusal(resumed, workspace) == ("", "stopping")
    Execution.objects.filter(pk=execution.pk).update(state=State.STOPPED, slots_reserved_at=NOW, ended_at=NOW)
    assert refusal(resumed, workspace) == ("", "pod_stays")
    assert Execution.objects.count() == 1


def test_database_refuses_a_second_active_execution(shop: Shop) -> None:
    workspace = stopped(shop)
    execution = resumed(workspace)
    execution.pk, execution._state.adding = "another", True
    with pytest.raises(IntegrityError), transaction.atomic():
        execution.save(force_insert=True)


def test_former_member_resumes_after_returning(shop: Shop) -> None:
    member = shop.people.teammate
    workspace = stopped(shop, owner=member)
    membership = shop.project.memberships.get(user=member)
    for role in ("viewer", None):
        if role:
            shop.project.memberships.filter(user=member).update(role=role)
        else:
            membership.delete()
        with pytest.raises(Rejected, match="You are no longer a contributor of its project, Churn"):
            resumed(workspace)
    shop.project.members.add(member, through_defaults={"role": "contributor"})
    assert why_not_resume(workspace) is None
    assert resumed(workspace).owner == member


def test_neither_an_archived_project_nor_a_closed_account_resumes(shop: Shop) -> None:
    workspace = stopped(shop)
    shop.project.is_archived = True
    shop.project.save()
    assert refusal(resumed, workspace) == ("", "archived")
    workspace.owner.is_active = False
    workspace.owner.save()
    assert refusal(resumed, workspace) == ("", "inactive")


def test_stopped_workspace_is_renamed_and_running_one_is_not(shop: Shop) -> None:
    workspace = stopped(shop)
    rename(workspace.pk, "  Churn, second try ")
    assert refusal(rename, workspace.pk, "\u202eevil") == ("title", "unprintable")
    assert resumed(workspace).title == "Churn, second try"
    assert refusal(rename, workspace.pk, "Other") == ("", "active")


def test_only_a_stopped_workspace_is_deleted_and_executions_stay(shop: Shop) -> None:
    living = shop.launch()
    assert refusal(delete, living.pk, now=LATER) == ("", "active")
    request_stop(living, by="alice", now=NOW)
    delete(living.pk, now=LATER)
    workspace = Workspace.objects.get()
    assert refusal(resumed, workspace) == ("", "deleted")
    assert Execution.objects.get().workspace == workspace


# --- Restarting ---


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

    def read(workspace_id: str) -> None:
        if workspace_id == broken.workspace_id:
            raise ValueError("it was stored by an earlier version")

    monkeypatch.setattr("grid.workspaces.workspaces._latest", read)
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


@pytest.mark.parametrize("with_cluster", [False, True])
def test_restart_without_budget_leaves_the_workspace_running(shop: Shop, with_cluster: bool) -> None:
    execution = shop.launch_with_cluster()[0] if with_cluster else shop.launch()
    Execution.objects.filter(pk=execution.pk).update(state=State.RUNNING)
    use_up(shop)
    with pytest.raises(Rejected, match="has spent"):
        request_restart(execution.workspace_id or "", by="alice", now=NOW)
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
