"""The way of an execution, alone or with its cluster: up, to its end or a stop, in time or too late, and what is told of it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from grid.configuration import DEPLOYING_TIMEOUT, MAXIMUM_EXECUTIONS_PER_USER, OVER_QUOTA_TIMEOUT, PREPARING_TIMEOUT
from grid.core.errors import ClusterUnavailable
from grid.executions.stopping import request_stop
from grid.kube.resources import CONFIG_MAPS, PODS, SECRETS, VOLUME_CLAIMS
from grid.models import Execution, HardwareTier, LastAdmission, LifecycleEntry, State
from grid.models.dataplane import LOCAL
from grid.queue import snapshot
from tests.controller.world import World, fresh, in_world, launched, running, states_of, to_running
from tests.support.builders import NAMESPACE
from tests.support.shop import NOW, OWNER, Shop, admit_waiting
from tests.support.virtual import passes

Configure = Callable[[Any, int], None]


async def until_gone(world: World, controller: Any) -> None:
    """The kubelet confirms the end of what was asked to end."""
    world.behave()
    await world.step(controller)


@in_world
async def test_workspace_comes_up_and_stops_and_files_stay(shop: Shop) -> None:
    world, controller, execution = await running(shop)

    assert states_of(execution) == ["queued", "deploying", "preparing", "running"]
    assert (fresh(execution).node_name, execution.started_at, execution.slots_freed_at) == ("node-1", world.now, None)

    request_stop(execution, by="bob", now=world.now)
    await world.step(controller)
    assert fresh(execution).state == "stopping"
    assert execution.slots_freed_at is None, "its pod is not gone yet"
    assert "deletionTimestamp" in world.pod_of(execution)["metadata"]

    world.behave()
    await world.step(controller)
    assert states_of(execution)[-2:] == ["stopping", "stopped"]
    assert fresh(execution).slots_freed_at == world.now
    assert "bob" in execution.words(OWNER)
    assert [len(world.cluster.objects(kind)) for kind in (PODS, CONFIG_MAPS, SECRETS)] == [0, 0, 0]
    volumes = sorted(claim["metadata"]["name"] for claim in world.cluster.objects(VOLUME_CLAIMS))
    assert volumes == [f"home-churn-{execution.owner_id}", "project-churn"]


@in_world
async def test_job_ends_by_itself_and_its_log_is_kept(shop: Shop) -> None:
    world, controller, execution = await running(shop, kind="job", environment=shop.job)
    world.cluster.set_log(execution.object_name, ["epoch 1", "done\x00"], namespace=NAMESPACE, container="run")
    world.behave()
    world.cluster.fail_next(ClusterUnavailable("busy"), verb="delete")  # a pod that has ended would be gone at once
    await world.step(controller)
    assert (fresh(execution).state, execution.slots_freed_at) == ("finishing", None)
    await passes(2)
    await world.step(controller)
    await until_gone(world, controller)
    fresh(execution)

    assert states_of(execution) == ["queued", "deploying", "preparing", "running", "finishing", "succeeded"]
    assert execution.log.text == "epoch 1\ndone\n"
    assert execution.slots_freed_at == execution.ended_at == world.now
    assert world.pods() == []


@in_world
async def test_a_job_that_fails_says_how(shop: Shop) -> None:
    world, controller, execution = await running(shop, kind="job", environment=shop.job)
    world.finish(world.pod_of(execution), 137, "OOMKilled")
    await world.step(controller)
    await until_gone(world, controller)
    assert (fresh(execution).state, execution.reason) == ("failed", "out_of_memory")
    assert "its limit of 4 GiB" in execution.words(OWNER)


@in_world
async def test_quick_job_goes_through_all_states(shop: Shop) -> None:
    world, controller, execution = launched(shop, kind="job", environment=shop.job)
    await world.step(controller)
    pod = world.pod_of(execution)
    world.schedule(pod)
    world.finish(world.pod_of(execution), 0)
    await world.step(controller)
    await until_gone(world, controller)
    assert states_of(execution) == ["queued", "deploying", "preparing", "running", "finishing", "succeeded"]


@in_world
async def test_workspace_shut_down_from_within_has_ended(shop: Shop) -> None:
    world, controller, execution = await running(shop)
    world.finish(world.pod_of(execution), 0)
    await world.step(controller)
    await until_gone(world, controller)
    assert (fresh(execution).state, execution.reason) == ("succeeded", "completed")


@in_world
async def test_stop_in_each_state_ends_and_frees_slot(shop: Shop) -> None:
    for rounds in range(4):
        world, controller, execution = launched(shop)
        await world.rounds(controller, rounds)
        request_stop(execution, by="alice", now=world.now)
        await world.rounds(controller, 3)
        assert fresh(execution).state == "stopped"
        assert bool(execution.slots_reserved_at) == bool(execution.slots_freed_at) == (rounds > 0)
        assert world.pods() == []


@in_world
async def test_launch_over_quota_waits_and_starts_by_itself(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    world = World()
    first, second, third = (shop.launch(after=n) for n in range(3))
    controller = world.controller()
    await to_running(world, controller)
    assert (fresh(first).state, fresh(second).state) == ("running", "queued")
    assert second.reason == "over_user_slots"
    assert (
        second.words(OWNER) == "You use 1 of 1 slots; this starts by itself when one is free. It is number 1 of yours."
    )
    assert "It is number 2 of yours." in fresh(third).words(OWNER)

    request_stop(first, by="alice", now=world.now)
    await world.step(controller)
    assert fresh(second).state == "queued", "the first one's pod still lives"
    world.behave()
    await world.step(controller)
    await world.step(controller)
    assert (fresh(first).state, fresh(second).state, fresh(third).state) == ("stopped", "deploying", "queued")
    assert "It is number 1 of yours." in third.words(OWNER)


@in_world
async def test_unchanged_executions_cause_no_writes(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    world = World()
    executions = [shop.launch(after=n) for n in range(2)]
    controller = world.controller()
    await to_running(world, controller)
    before, requests = [fresh(execution).revision for execution in executions], world.cluster.count()
    for _ in range(3):
        await world.step(controller)
    assert [fresh(execution).revision for execution in executions] == before
    assert world.cluster.count() == requests


@in_world
async def test_timeouts_end_execution_as_error_and_clean_up(shop: Shop, configure: Configure) -> None:
    for setting, slots, reason, words in (
        (
            DEPLOYING_TIMEOUT,
            1,
            "deploying_timeout",
            "No node took it within 90 seconds. Last known: The cluster has no node.",
        ),
        (PREPARING_TIMEOUT, 1, "preparing_timeout", "Not ready within 90 seconds. Last known: Node node-1 was chosen"),
        (
            OVER_QUOTA_TIMEOUT,
            0,
            "over_quota_timeout",
            "No slot became free within 90 seconds. Resume it when there is room.",
        ),
    ):
        configure(MAXIMUM_EXECUTIONS_PER_USER, slots)
        world, controller, execution = launched(shop)
        await world.step(controller)
        if setting == PREPARING_TIMEOUT:
            world.schedule(world.pod_of(execution))
            await world.step(controller)
        configure(setting, 90)  # in force at once, also for what waits already
        world.passes(91)
        await world.step(controller)
        world.behave()
        await world.step(controller)
        assert (fresh(execution).state, execution.reason) == ("error", reason)
        assert words in execution.words(OWNER)
        assert world.pods() == []
        assert bool(execution.slots_reserved_at) == bool(execution.slots_freed_at)
        assert LifecycleEntry.objects.get(execution=execution, to_state="error").level == "Warning"


@in_world
async def test_kubernetes_events_are_kept_once_with_their_count(shop: Shop) -> None:
    world, controller, execution = launched(shop)
    await world.step(controller)
    pod = world.pod_of(execution)
    for count in (1, 2, 2, 5, 3):
        world.says(pod, "FailedScheduling", f"0/3 nodes {count}", count=count, kind="Warning")
        world.says(pod, "TriggeredScaleUp", "hostile\x00 text")
        await world.step(controller)
    entries = LifecycleEntry.objects.filter(execution=execution, source="kubernetes").order_by("reason")
    assert [(entry.reason, entry.count, entry.level) for entry in entries] == [
        ("FailedScheduling", 5, "Warning"),
        ("TriggeredScaleUp", 1, "Normal"),
    ]
    assert entries[0].object == f"Pod/{execution.object_name}"
    assert entries[1].words(OWNER) == "hostile text"


def states() -> dict[str, str]:
    """By kind."""
    return dict(Execution.objects.values_list("kind", "state"))


def test_both_are_admitted_at_once_and_told_in_order(shop: Shop) -> None:
    workspace, cluster = shop.launch_with_cluster()
    assert admit_waiting(LOCAL, now=NOW) == [workspace.pk, cluster.pk]
    assert states() == {"workspace": "deploying", "cluster": "deploying"}
    assert set(Execution.objects.values_list("slots_reserved_at", flat=True)) == {NOW}
    (held,) = snapshot.take(LOCAL, now=NOW).snapshot.holding
    assert (held.tier, held.executions, held.slots) == ("small", 2, 7)


def test_pair_without_room_waits_with_the_same_message(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 7)
    shop.launch()
    admit_waiting(LOCAL, now=NOW)
    workspace, cluster = shop.launch_with_cluster(after=1)
    shop.launch(after=2)

    assert admit_waiting(LOCAL, now=NOW) == []
    message = (
        "You use 1 of 7 slots; this starts by itself when 7 are free (1 for the workspace and 6 for the cluster). "
    )
    message += "It is number 1 of yours."
    for row in (workspace, cluster):
        row.refresh_from_db()
        assert (row.state, row.reason, row.words(OWNER)) == ("queued", "over_user_slots", message)
    assert "It is number 2 of yours." in Execution.objects.latest("requested_at").words(OWNER)


def test_killed_between_the_two_rows_nothing_is_admitted(shop: Shop) -> None:
    """What the database does with a transaction whose process is gone."""
    shop.launch_with_cluster()

    class Gone(BaseException):
        pass

    def dies_at_the_second(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("UPDATE") and Execution.objects.filter(state="deploying").exists():
            raise Gone
        return execute(sql, params, many, context)

    with connection.execute_wrapper(dies_at_the_second), pytest.raises(Gone):
        admit_waiting(LOCAL, now=NOW)
    assert states() == {"workspace": "queued", "cluster": "queued"}
    assert len(admit_waiting(LOCAL, now=NOW)) == 2


def test_pair_that_waits_too_long_ends_together(shop: Shop, configure: Configure) -> None:
    shop.launch_with_cluster()
    configure(MAXIMUM_EXECUTIONS_PER_USER, 3)
    admit_waiting(LOCAL, now=NOW)
    assert states() == {"workspace": "queued", "cluster": "queued"}
    admit_waiting(LOCAL, now=NOW + timedelta(seconds=OVER_QUOTA_TIMEOUT.default + 1))
    assert states() == {"workspace": "error", "cluster": "error"}
    assert set(Execution.objects.values_list("reason", flat=True)) == {"over_quota_timeout"}


def test_stopping_a_waiting_workspace_stops_its_cluster_too(shop: Shop) -> None:
    workspace, cluster = shop.launch_with_cluster()
    request_stop(workspace, by="alice", now=NOW)

    assert states() == {"workspace": "stopped", "cluster": "stopped"}
    cluster.refresh_from_db()
    assert cluster.words(OWNER) == "Stopped with the workspace that it belongs to, by alice, before it started."
    assert (cluster.ended_at, cluster.stop_requested_by) == (NOW, "alice")
    assert admit_waiting(LOCAL, now=NOW) == []


def test_stopping_a_waiting_cluster_leaves_its_workspace(shop: Shop) -> None:
    workspace, cluster = shop.launch_with_cluster()
    request_stop(cluster, by="alice", now=NOW)

    assert states() == {"workspace": "queued", "cluster": "stopped"}
    workspace.refresh_from_db()
    line = workspace.lifecycle.get(source="change")
    assert (line.reason, line.words(OWNER)) == (
        "WithoutCluster",
        "alice stopped its cluster before it started; this continues without a cluster.",
    )
    assert admit_waiting(LOCAL, now=NOW) == [workspace.pk]


def test_pair_takes_a_place_on_each_limited_tier(shop: Shop) -> None:
    head = HardwareTier.objects.create(id="head", name="Head", node_pool="default", cores="1", memory="1Gi")
    HardwareTier.objects.create(
        id="limited", name="Limited", node_pool="default", cores="1", memory="1Gi", maximum_simultaneous=2
    )
    limited = HardwareTier.objects.get(pk="limited")
    shop.launch_with_cluster(tier=limited, head_tier=head)
    shop.launch_with_cluster(tier=head, head_tier=limited, after=1, workers_maximum=3)
    third, _ = shop.launch_with_cluster(tier=limited, head_tier=limited, after=2, workers_maximum=3)
    assert len(admit_waiting(LOCAL, now=NOW)) == 4

    third.refresh_from_db()
    assert third.words(OWNER).startswith("The tier Limited runs 2 of at most 2 executions at once")
    holding = {(held.tier, held.executions, held.slots) for held in snapshot.take(LOCAL, now=NOW).snapshot.holding}
    assert holding == {("small", 2, 2), ("limited", 2, 6), ("head", 2, 4)}
    assert snapshot.held_slots() == {LOCAL: snapshot.peek(LOCAL, now=NOW).snapshot.holding}


def test_cluster_whose_workspace_is_gone_never_starts(shop: Shop) -> None:
    workspace, cluster = shop.launch_with_cluster()
    Execution.objects.filter(pk=workspace.pk).update(state="error")
    assert admit_waiting(LOCAL, now=NOW) == []
    request_stop(cluster, by="the controller", now=NOW)
    assert cluster.state == State.STOPPED


def test_admission_is_remembered_per_user_on_each_tier(shop: Shop) -> None:
    other = HardwareTier.objects.create(id="other", name="Other", node_pool="default", cores="1", memory="1Gi")
    shop.launch_with_cluster(head_tier=other)
    admit_waiting(LOCAL, now=NOW)
    shop.launch(after=5)
    later = NOW + timedelta(minutes=1)
    admit_waiting(LOCAL, now=later)
    user = shop.people.owner
    remembered = LastAdmission.objects.values_list("user", "tier", "at")
    assert set(remembered) == {(user.pk, shop.tier.pk, later), (user.pk, "other", NOW)}
