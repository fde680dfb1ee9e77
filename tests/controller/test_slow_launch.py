"""A launch while the API server takes seconds for each answer: what need not know each other is asked for at once."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from grid.core.errors import Rejected
from grid.executions import apply
from grid.executions.manifests import Manifest
from grid.kube.objects import RawObject
from grid.kube.resources import CONFIG_MAPS, PODS, SECRETS, VOLUME_CLAIMS, Resource
from tests.controller.world import World, fresh, in_world
from tests.support.builders import NAMESPACE, condition
from tests.support.cluster import FakeCluster
from tests.support.shop import Shop
from tests.support.virtual import loop_time, virtual_time

SECONDS = 2.0


def slowed(cluster: FakeCluster) -> dict[float, list[str]]:
    """Make each answer take time; return the kinds of objects that are asked for, by the second at which they are."""
    asked, began = defaultdict[float, list[str]](list), loop_time()

    def slow(verb: str, do: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def answer(resource: Resource, *args: Any, **kwargs: Any) -> Any:
            asked[loop_time() - began].append(f"{verb} {resource.kind}")
            await asyncio.sleep(SECONDS)
            return await do(resource, *args, **kwargs)

        return answer

    for verb in ("create", "get"):
        setattr(cluster, verb, slow(verb, getattr(cluster, verb)))
    return asked


@in_world
async def test_run_is_created_in_three_answers(shop: Shop) -> None:
    """Also of a project whose claims exist, of which this controller does not know yet; and the pod after all that it refers to."""
    world = World()
    shop.launch()
    await world.step(world.controller())
    world.behave()
    second = shop.launch()
    asked = slowed(world.cluster)
    await world.step(world.controller())
    assert fresh(second).state == "deploying"
    creations = {at: kinds for at, kinds in asked.items() if any("create" in kind for kind in kinds)}
    assert creations == {
        0.0: ["create ConfigMap", "create PersistentVolumeClaim", "create PersistentVolumeClaim"],
        2.0: ["create Secret"],
        4.0: ["create Pod"],
    }


@in_world
async def test_launch_with_known_claims_takes_few_requests(shop: Shop) -> None:
    """From the request until it runs."""
    world = World()
    controller = world.controller()
    first = shop.launch()
    await world.rounds(controller, 4)
    asked = len(world.cluster.requests)
    second = shop.launch()
    await world.rounds(controller, 4)
    assert [fresh(each).state for each in (first, second)] == ["running", "running"]
    asked_for_second = [f"{each.verb} {each.resource.kind}" for each in world.cluster.requests[asked:]]
    assert asked_for_second == ["create ConfigMap", "create Secret", "create Pod"]


@in_world
async def test_known_claim_that_is_gone_is_created_again(shop: Shop) -> None:
    world = World()
    controller = world.controller()
    shop.launch()
    await world.step(controller)
    claims = world.cluster.objects(VOLUME_CLAIMS)
    for claim in claims:
        world.cluster.remove(VOLUME_CLAIMS, claim["metadata"]["name"], namespace=NAMESPACE)
    second = shop.launch()
    await world.step(controller)
    assert not world.cluster.objects(VOLUME_CLAIMS)
    pod = world.pod_of(second)
    gone = " ".join(f'persistentvolumeclaim "{claim["metadata"]["name"]}" not found.' for claim in claims)
    message = f"0/3 nodes are available: {gone}"
    pod["status"]["conditions"] = [condition("PodScheduled", "False", reason="Unschedulable", message=message)]
    world.cluster.put(PODS, pod)
    await world.step(controller)
    assert {claim["metadata"]["name"] for claim in world.cluster.objects(VOLUME_CLAIMS)} == {
        claim["metadata"]["name"] for claim in claims
    }


@in_world
async def test_cluster_is_created_in_four_answers(shop: Shop) -> None:
    """Rules before pods, and workers once the head has an address; an autoscaler has something to scale from its beginning."""
    world = World()
    cluster = shop.launch_cluster()
    asked = slowed(world.cluster)
    await world.step(world.controller())
    assert fresh(cluster).reason == "created"
    creations = [[kind.removeprefix("create ") for kind in kinds] for kinds in asked.values() if "create" in kinds[0]]
    first, rules, makers, autoscaler = creations
    assert set(first) == {"ConfigMap", "PersistentVolumeClaim"}
    assert {"Service", "NetworkPolicy", "PodDisruptionBudget"} <= set(rules)
    assert makers == ["Deployment", "Deployment"]
    assert autoscaler == ["HorizontalPodAutoscaler"]


def manifest(resource: Resource, name: str) -> Manifest:
    return Manifest.of(resource, {"name": name, "namespace": NAMESPACE, "labels": {}})


@virtual_time
async def test_first_refusal_is_raised_when_all_have_answered() -> None:
    cluster = FakeCluster()
    asked = [manifest(CONFIG_MAPS, "Not a name"), manifest(SECRETS, "also not"), manifest(CONFIG_MAPS, "right")]
    with pytest.raises(Rejected, match="Not a name"):
        await apply.create_at_once(cluster, asked, "abc")
    assert [item["metadata"]["name"] for item in cluster.objects(CONFIG_MAPS)] == ["right"]


@virtual_time
async def test_claim_that_exists_is_not_read() -> None:
    cluster = FakeCluster()
    claim = manifest(VOLUME_CLAIMS, "project-churn")
    known: RawObject = cluster.put(VOLUME_CLAIMS, claim.body)
    assert await apply.create_at_once(cluster, [claim], "abc") == [claim.body]
    assert cluster.objects(VOLUME_CLAIMS) == [known]
    assert [request.verb for request in cluster.requests] == ["create"]
