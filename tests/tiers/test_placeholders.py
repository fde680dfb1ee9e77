"""Placeholders come and go with the warm-up hours of tiers, whoever else keeps them, and take nothing from anybody."""

from datetime import timedelta
from typing import Any

import pytest

from grid.configuration import WARM_PLACES
from grid.core.errors import ClusterUnavailable, NotAllowed
from grid.core.labels import KEYS, PLACEHOLDER_CLASS, WARM_UNTIL
from grid.diagnosis.requests import is_placeholder
from grid.diagnosis.room import NodeRoom
from grid.kube.objects import Pod, RawObject
from grid.kube.resources import PODS, PRIORITY_CLASSES, Resource
from grid.models import HardwareTier, UsageInterval
from grid.tiers.placeholders import CLASS, PRIORITY, PlaceholderKeeper
from tests.controller.test_controller import Configure
from tests.controller.world import World, in_world
from tests.support.builders import decode
from tests.support.shop import NOW, Shop

HOURS: dict[str, Any] = {
    "warm_places": 2,
    "warm_days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    "warm_from": (NOW - timedelta(hours=1)).strftime("%H:%M"),
    "warm_until": (NOW + timedelta(hours=2)).strftime("%H:%M"),
}


@pytest.fixture
def warm(shop: Shop, configure: Configure) -> HardwareTier:
    configure(WARM_PLACES, 10)
    HardwareTier.objects.filter(pk=shop.tier.pk).update(**HOURS)
    return HardwareTier.objects.get(pk=shop.tier.pk)


async def keep(world: World) -> None:
    """Run the keeper of a new controller, which remembers nothing, once."""
    await PlaceholderKeeper(world.controller()._context).run_once()


def names(world: World) -> set[str]:
    return {pod["metadata"]["name"] for pod in world.pods()}


@in_world
async def test_tier_has_placeholders_only_in_its_hours(warm: HardwareTier) -> None:
    world = World()
    await keep(world)
    first, second = world.pods()
    assert first["spec"]["priorityClassName"] == PLACEHOLDER_CLASS
    assert first["spec"]["containers"][0]["resources"]["requests"]["memory"] == "4Gi"
    assert first["metadata"]["labels"][KEYS.tier] == "small"
    assert first["metadata"]["annotations"][WARM_UNTIL] == f"{HOURS['warm_until']} (UTC)"
    assert KEYS.execution not in first["metadata"]["labels"]
    assert KEYS.user not in first["metadata"]["labels"]
    world.passes(7190)
    await keep(world)
    assert world.pods() == [first, second], "until the last minute"
    world.passes(20)
    await keep(world)
    assert not world.pods()


@in_world
async def test_evicted_or_ended_placeholder_is_made_again(warm: HardwareTier) -> None:
    world = World()
    await keep(world)
    gone, ended = world.pods()
    world.cluster.remove(PODS, gone["metadata"]["name"], namespace=gone["metadata"]["namespace"])
    world.cluster.put(PODS, ended | {"status": {"phase": "Failed"}})
    await keep(world)
    await keep(world)
    assert names(world) == {gone["metadata"]["name"], ended["metadata"]["name"]}
    assert {pod["status"]["phase"] for pod in world.pods()} == {"Pending"}


@pytest.mark.parametrize(
    ("changes", "most", "left"),
    [
        ({"is_archived": True}, 10, 0),
        ({"warm_places": None}, 10, 0),
        ({"warm_places": 2}, 0, 0),
        ({"warm_places": 2}, 1, 1),
        ({"memory": "8Gi"}, 10, 2),
    ],
    ids=["archived", "none", "off", "less", "otherwise"],
)
@in_world
async def test_unwanted_placeholder_is_removed(
    warm: HardwareTier, configure: Configure, changes: dict[str, Any], most: int, left: int
) -> None:
    world = World()
    await keep(world)
    before = names(world)
    HardwareTier.objects.filter(pk=warm.pk).update(**changes)
    configure(WARM_PLACES, most)
    await keep(world)
    assert len(names(world)) == left
    assert (names(world) <= before) == ("memory" not in changes)


@in_world
async def test_duplicate_or_killed_controllers_make_no_surplus_placeholders(warm: HardwareTier) -> None:
    world = World()
    await keep(world)
    half = world.pods()[0]["metadata"]
    world.cluster.remove(PODS, half["name"], namespace=half["namespace"])
    sees = world.cluster.list_page

    async def nothing(resource: Any, **options: Any) -> bytes:
        return b'{"items": []}' if resource == PODS else await sees(resource, **options)

    world.cluster.list_page = nothing  # type: ignore[method-assign]
    await keep(world)
    assert len(world.pods()) == 2


@in_world
async def test_the_priority_class_is_made_where_it_may_be(warm: HardwareTier) -> None:
    world = World()
    missing = NotAllowed("pods is forbidden: no PriorityClass with name compute-grid-placeholder was found")
    world.cluster.fail_next(missing, verb="create")
    await keep(world)
    (priority_class,) = world.cluster.objects(PRIORITY_CLASSES)
    assert priority_class["value"] == CLASS["value"] == PRIORITY < 0
    assert len(world.pods()) == 2
    for pod in world.pods():
        world.cluster.remove(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])
    world.cluster.fail_next(missing, times=2, verb="create")
    with pytest.raises(NotAllowed, match=r"apply deploy/access\.yaml again"):
        await keep(world)
    world.cluster.fail_next(ClusterUnavailable("away"))
    with pytest.raises(ClusterUnavailable):
        await keep(world)
    await keep(world)
    assert len(world.pods()) == 2


@in_world
async def test_refused_placeholder_keeps_no_other_tier_cold(
    warm: HardwareTier, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    create = world.cluster.create
    refused: list[str] = []

    async def choosy(resource: Resource, body: RawObject, **options: Any) -> RawObject:
        if resource == PODS and body["metadata"]["labels"][KEYS.tier] == "small":
            refused.append(body["metadata"]["name"])
            raise NotAllowed("maximum memory usage per Pod is 1Gi")
        return await create(resource, body, **options)

    monkeypatch.setattr(world.cluster, "create", choosy)
    warm.pk, warm.name = "zebra", "Zebra"
    warm.save()
    with pytest.raises(NotAllowed, match="maximum memory"):
        await keep(world)
    assert [pod["metadata"]["labels"][KEYS.tier] for pod in world.pods()] == ["zebra", "zebra"]
    assert len(refused) == 1, "the second of the tier would be refused as well"


@in_world
async def test_the_controller_takes_no_placeholder_for_an_execution(warm: HardwareTier, shop: Shop) -> None:
    world = World()
    controller = world.controller()
    await keep(world)
    execution = shop.launch()
    await world.step(controller)
    await controller.audit()
    await world.step(controller)
    await keep(world)
    assert len(world.pods()) == 3
    assert world.pod_of(execution)
    assert not UsageInterval.objects.exists()


def test_their_room_is_free() -> None:
    labels = {"app.kubernetes.io/name": "compute-grid", "app.kubernetes.io/component": "placeholder"}
    spec = {
        "nodeName": "n1",
        "priority": PRIORITY,
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
    }
    placeholder = decode({"metadata": {"name": "warm", "labels": labels}, "spec": spec}, Pod)
    pretender = decode({"metadata": {"name": "other", "labels": labels}, "spec": {**spec, "priority": 0}}, Pod)
    assert [is_placeholder(pod) for pod in (placeholder, pretender)] == [True, False]
    room = NodeRoom()
    room.pod_changed(None, placeholder)
    assert room.requested("n1") == {}
    room.pod_changed(None, pretender)
    assert room.amounts("n1").cpu == 1000
    room.pod_changed(placeholder, None)
    assert room.requested("n1")["pods"] == 1
