"""The way of an execution through the cluster, with everything that may happen on the way."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from grid.centralconfig import (
    DEPLOYING_TIMEOUT,
    MAXIMUM_EXECUTIONS_PER_USER,
    OVER_QUOTA_TIMEOUT,
    PREPARING_TIMEOUT,
)
from grid.errors import ClusterUnavailable, NotAllowed, NotFound, Problem, Rejected
from grid.kube.resources import CONFIG_MAPS, NAMESPACES, PODS, SECRETS, VOLUME_CLAIMS
from grid.launch.request import request_stop
from grid.models import Execution, LifecycleEntry
from tests.launch.conftest import Shop
from tests.launch.world import World, fresh, in_world, states_of
from tests.support.builders import NAMESPACE, condition, config_map, container_status
from tests.support.virtual import passes

Configure = Callable[[Any, int], None]


async def until_gone(world: World, controller: Any) -> None:
    """The kubelet confirms the end of what was asked to end."""
    world.behave()
    await world.step(controller)


async def to_running(world: World, controller: Any) -> None:
    for _ in range(2):
        await world.step(controller)
        world.behave()
    await world.step(controller)


@in_world
async def test_a_workspace_comes_up_and_stops_and_its_files_stay(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    await to_running(world, controller)

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
    assert "bob" in execution.message
    assert [len(world.cluster.objects(kind)) for kind in (PODS, CONFIG_MAPS, SECRETS)] == [0, 0, 0]
    assert [claim["metadata"]["name"] for claim in world.cluster.objects(VOLUME_CLAIMS)] == ["project-churn"]


@in_world
async def test_a_job_ends_by_itself_and_its_log_is_kept(shop: Shop) -> None:
    world = World()
    execution = shop.launch(kind="job", environment=shop.job)
    controller = world.controller()
    await to_running(world, controller)
    world.cluster.set_log(execution.object_name, ["epoch 1", "done\x00"], namespace=NAMESPACE, container="run")
    world.behave()
    await world.step(controller)
    assert (fresh(execution).state, execution.slots_freed_at) == ("finishing", None)
    await until_gone(world, controller)
    fresh(execution)

    assert states_of(execution) == ["queued", "deploying", "preparing", "running", "finishing", "succeeded"]
    assert execution.final_log == "epoch 1\ndone\n"
    assert execution.slots_freed_at == execution.ended_at == world.now
    assert world.pods() == []


@in_world
async def test_a_job_that_fails_says_how(shop: Shop) -> None:
    world = World()
    execution = shop.launch(kind="job", environment=shop.job)
    controller = world.controller()
    await to_running(world, controller)
    world.finish(world.pod_of(execution), 137, "OOMKilled")
    await world.step(controller)
    await until_gone(world, controller)
    assert (fresh(execution).state, execution.reason) == ("failed", "out_of_memory")
    assert "its limit of 4 GiB" in execution.message


@in_world
async def test_a_job_too_quick_to_be_seen_running_goes_through_all_states(shop: Shop) -> None:
    world = World()
    execution = shop.launch(kind="job", environment=shop.job)
    controller = world.controller()
    await world.step(controller)
    pod = world.pod_of(execution)
    world.schedule(pod)
    world.finish(world.pod_of(execution), 0)
    await world.step(controller)
    await until_gone(world, controller)
    assert states_of(execution) == ["queued", "deploying", "preparing", "running", "finishing", "succeeded"]


@in_world
async def test_a_workspace_that_is_shut_down_from_within_has_ended(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    await to_running(world, controller)
    world.finish(world.pod_of(execution), 0)
    await world.step(controller)
    await until_gone(world, controller)
    assert (fresh(execution).state, execution.reason) == ("succeeded", "completed")


@in_world
async def test_a_stop_in_each_state_ends_it_and_frees_its_slot(shop: Shop) -> None:
    for rounds in range(4):
        world = World()
        execution = shop.launch()
        controller = world.controller()
        for _ in range(rounds):
            await world.step(controller)
            world.behave()
        request_stop(execution, by="alice", now=world.now)
        for _ in range(3):
            await world.step(controller)
            world.behave()
        assert fresh(execution).state == "stopped"
        assert bool(execution.slots_reserved_at) == bool(execution.slots_freed_at) == (rounds > 0)
        assert world.pods() == []


@in_world
async def test_over_quota_waits_with_a_sentence_and_starts_by_itself(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    world = World()
    first, second, third = (shop.launch(after=n) for n in range(3))
    controller = world.controller()
    await to_running(world, controller)
    assert (fresh(first).state, fresh(second).state) == ("running", "queued")
    assert second.reason == "over_user_slots"
    assert second.message == "You use 1 of 1 slots; this starts by itself when one is free. Position 1."
    assert "Position 2." in fresh(third).message

    request_stop(first, by="alice", now=world.now)
    await world.step(controller)
    assert fresh(second).state == "queued", "the first one's pod still lives"
    world.behave()
    await world.step(controller)
    await world.step(controller)
    assert (fresh(first).state, fresh(second).state, fresh(third).state) == ("stopped", "deploying", "queued")
    assert "Position 1." in third.message


@in_world
async def test_nothing_is_written_while_nothing_changes(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    world = World()
    executions = [shop.launch(after=n) for n in range(2)]
    controller = world.controller()
    await to_running(world, controller)
    before, requests = [fresh(one).revision for one in executions], world.cluster.count()
    for _ in range(3):
        await world.step(controller)
    assert [fresh(one).revision for one in executions] == before
    assert world.cluster.count() == requests


@in_world
async def test_the_three_timeouts_end_it_as_an_error_and_clean_up(shop: Shop, configure: Configure) -> None:
    for setting, slots, reason, words in (
        (DEPLOYING_TIMEOUT, 1, "deploying_timeout", "No node took it within 90 seconds. Last known: Nobody has looked"),
        (PREPARING_TIMEOUT, 1, "preparing_timeout", "Not ready within 90 seconds. Last known: Node node-1 was chosen"),
        (OVER_QUOTA_TIMEOUT, 0, "over_quota_timeout", "No slot became free within 90 seconds."),
    ):
        configure(MAXIMUM_EXECUTIONS_PER_USER, slots)
        world = World()
        execution = shop.launch()
        controller = world.controller()
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
        assert words in execution.message
        assert world.pods() == []
        assert bool(execution.slots_reserved_at) == bool(execution.slots_freed_at)
        assert LifecycleEntry.objects.get(execution=execution, to_state="error").level == "Warning"


@in_world
async def test_a_pod_that_vanishes_is_an_error_with_its_reason_and_is_not_made_again(shop: Shop) -> None:
    for rounds in (1, 2, 3):
        world = World()
        execution = shop.launch()
        controller = world.controller()
        for _ in range(rounds):
            await world.step(controller)
            world.behave()
        world.cluster.remove(PODS, execution.object_name, namespace=NAMESPACE)
        await world.step(controller)
        await world.step(controller)
        assert (fresh(execution).state, execution.reason) == ("error", "pod_gone")
        assert execution.slots_freed_at is not None
        assert world.cluster.count("create", PODS) == 1


@in_world
async def test_an_eviction_is_told_with_its_reason_and_the_slot_waits_for_the_pod(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    await to_running(world, controller)
    pod = world.pod_of(execution)
    pod["status"]["conditions"].append(
        condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "node is drained")
    )
    world.cluster.put(PODS, pod)
    await world.cluster.delete(PODS, execution.object_name, namespace=NAMESPACE)
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("error", "pod_deleted")
    assert "(node is drained)" in execution.message
    assert execution.slots_freed_at is None
    world.behave()
    await world.step(controller)
    assert fresh(execution).slots_freed_at is not None


@in_world
async def test_a_slot_is_not_freed_on_the_word_of_a_stale_cache(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    await to_running(world, controller)
    request_stop(execution, by="alice", now=world.now)
    controller.pods.replace([])  # the cache says that it is gone; the cluster knows better
    await world.step(controller, fresh=False)
    assert (fresh(execution).state, execution.slots_freed_at) == ("stopping", None)


@in_world
async def test_a_running_one_survives_a_cache_that_lost_it(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    await to_running(world, controller)
    controller.pods.replace([])
    await world.step(controller, fresh=False)
    assert fresh(execution).state == "running"


@in_world
async def test_an_object_of_somebody_else_is_left_alone(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    world.cluster.put(CONFIG_MAPS, config_map(execution.object_name, {"theirs": "yes"}))
    await world.step(world.controller())
    assert (fresh(execution).state, execution.reason) == ("error", "not_created")
    assert "belongs to something else" in execution.message
    assert world.cluster.objects(CONFIG_MAPS)[0]["data"] == {"theirs": "yes"}
    assert execution.slots_freed_at is not None


@in_world
async def test_what_the_cluster_rejects_is_an_error_with_its_words(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    world.cluster.fail_next(Rejected([Problem("spec.containers[0].image", "Required value")]), verb="create")
    await world.step(world.controller())
    assert (fresh(execution).state, execution.reason) == ("error", "not_created")
    assert "spec.containers[0].image: Required value" in execution.message


@in_world
async def test_a_used_up_quota_of_the_namespace_is_waited_for(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    world.cluster.fail_next(NotAllowed("exceeded quota: pods"), verb="create")
    await world.step(controller)
    assert (fresh(execution).state, execution.message) == (
        "deploying",
        "The cluster does not allow it: exceeded quota: pods",
    )
    await passes(15)
    await to_running(world, controller)
    assert fresh(execution).state == "running"


@in_world
async def test_an_unreachable_cluster_is_waited_for(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    world.cluster.available = False
    for _ in range(5):
        await world.step(controller)
        await passes(30)
    assert fresh(execution).state == "deploying"
    world.cluster.available = True
    await to_running(world, controller)
    assert fresh(execution).state == "running"


@in_world
async def test_a_call_that_fails_a_few_times_is_repeated_until_it_works(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    world.cluster.fail_next(ClusterUnavailable("gone"), times=3)
    for _ in range(4):
        await world.step(controller)
        await passes(30)
    await to_running(world, controller)
    assert states_of(execution) == ["queued", "deploying", "preparing", "running"]


@in_world
async def test_a_missing_namespace_is_made(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    world.cluster.remove(NAMESPACES, NAMESPACE)
    world.cluster.fail_next(NotFound('namespaces "compute-grid" not found'), verb="create")
    controller = world.controller()
    await world.step(controller)
    await passes(2)
    await to_running(world, controller)
    assert [one["metadata"]["name"] for one in world.cluster.objects(NAMESPACES)] == [NAMESPACE]
    assert fresh(execution).state == "running"


@in_world
async def test_an_orphan_of_a_settled_execution_is_removed(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    await world.step(controller)
    orphan = world.pod_of(execution)
    world.cluster.remove(PODS, execution.object_name, namespace=NAMESPACE)
    await world.step(controller)
    assert fresh(execution).state == "error"
    world.cluster.put(PODS, orphan)  # a deposed leader's last request arrives late
    await world.step(controller)
    assert world.pods() == []


@in_world
async def test_pods_of_another_installation_are_left_alone(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    await to_running(world, controller)
    Execution.objects.all().delete()
    await world.step(controller)
    assert len(world.pods()) == 1
    assert execution.object_name == world.pods()[0]["metadata"]["name"]


@in_world
async def test_a_crash_loop_after_the_start_leaves_it_running_until_it_is_stopped(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    await to_running(world, controller)
    pod = world.pod_of(execution)
    pod["status"]["containerStatuses"] = [container_status(state={"waiting": {"reason": "CrashLoopBackOff"}})]
    world.cluster.put(PODS, pod)
    world.passes(timedelta(hours=2).total_seconds())
    await world.step(controller)
    assert fresh(execution).state == "running"


@in_world
async def test_kubernetes_events_are_kept_in_the_history_once_with_their_count(shop: Shop) -> None:
    world = World()
    execution = shop.launch()
    controller = world.controller()
    await world.step(controller)
    pod = world.pod_of(execution)
    for count in (1, 2, 2, 5, 3):
        world.says(pod, "FailedScheduling", f"0/3 nodes {count}", count=count, kind="Warning")
        world.says(pod, "TriggeredScaleUp", "hostile\x00 text")
        await world.step(controller)
    entries = LifecycleEntry.objects.filter(execution=execution, source="kubernetes").order_by("reason")
    assert [(one.reason, one.count, one.level) for one in entries] == [
        ("FailedScheduling", 5, "Warning"),
        ("TriggeredScaleUp", 1, "Normal"),
    ]
    assert entries[0].object == f"Pod/{execution.object_name}"
    assert entries[1].message == "hostile text"
