"""The way of an execution through the cluster: up, to its end or a stop, in time or too late, and what is told of it."""

from collections.abc import Callable
from typing import Any

from grid.configuration import DEPLOYING_TIMEOUT, MAXIMUM_EXECUTIONS_PER_USER, OVER_QUOTA_TIMEOUT, PREPARING_TIMEOUT
from grid.core.errors import ClusterUnavailable
from grid.executions.stopping import request_stop
from grid.kube.resources import CONFIG_MAPS, PODS, SECRETS, VOLUME_CLAIMS
from grid.models import LifecycleEntry
from tests.controller.world import World, fresh, in_world, launched, running, states_of, to_running
from tests.support.builders import NAMESPACE
from tests.support.reading import OWNER
from tests.support.shop import Shop
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
            "No node took it within 90 seconds. Last known: There is no node of the pool default.",
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
