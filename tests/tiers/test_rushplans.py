"""Rush plans: their placeholders come early, pull the image, give way to launches once, and go; whoever carries them out."""

from datetime import date, timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from grid.configuration import WARM_PLACES
from grid.core.labels import PLACEHOLDER_CLASS, RUSH_PLAN
from grid.diagnosis.resources import requested_amounts
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from grid.models import Environment, HardwareTier, Project, RushPlan
from grid.tiers.rushplans import plan_hours, plan_id
from tests.controller.test_controller import Configure
from tests.controller.world import World, in_world
from tests.support.builders import decode
from tests.support.shop import NOW, Shop
from tests.tiers.test_placeholders import keep

EARLY, HOURS = 20, 2


@pytest.fixture
def plan(shop: Shop, configure: Configure) -> RushPlan:
    """Three places that are ready in an hour."""
    configure(WARM_PLACES, 10)
    return make_plan(shop)


def make_plan(shop: Shop, **fields: Any) -> RushPlan:
    ready = NOW + timedelta(hours=1)
    given: dict[str, Any] = {
        "tier": shop.tier,
        "environment": shop.workspace,
        "places": 3,
        "on": ready.date(),
        "ready": f"{ready:%H:%M}",
        "until": f"{ready + timedelta(hours=HOURS):%H:%M}",
        "zone": "UTC",
        "early_minutes": EARLY,
    }
    plan = RushPlan(**(given | fields))
    plan.id = plan_id(plan)
    plan.save()
    return plan


def placeholders(world: World) -> list[Any]:
    return [pod for pod in world.pods() if pod["spec"].get("priorityClassName") == PLACEHOLDER_CLASS]


@in_world
async def test_places_start_early_and_pull_image_and_end(plan: RushPlan) -> None:
    Environment.objects.filter(pk=plan.environment_id).update(image_pull_secret="registry")
    world = World()
    world.passes(40 * 60 - 1)
    await keep(world)
    assert not world.pods(), "not before the minute at which they have to begin"
    world.passes(1)
    await keep(world)
    pods = placeholders(world)
    assert len(pods) == 3
    spec, meta = pods[0]["spec"], pods[0]["metadata"]
    (puller,) = spec["initContainers"]
    assert (puller["image"], puller["command"]) == ("compute-grid/jupyterlab:4.6", ["true"])
    assert puller["resources"] == spec["containers"][0]["resources"], "it takes no more room than the place"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert meta["annotations"][RUSH_PLAN] == plan.pk
    assert spec["activeDeadlineSeconds"] >= (EARLY + HOURS * 60) * 60, "and ends without a controller, soon after"
    world.passes((EARLY + HOURS * 60) * 60)
    await keep(world)
    assert not world.pods()


@in_world
async def test_launches_take_places_that_are_not_remade_until_end(plan: RushPlan, shop: Shop) -> None:
    world = World()
    controller = world.controller()
    shop.launch()
    await world.step(controller)
    world.passes(40 * 60)
    await keep(world)
    assert len(placeholders(world)) == 3, "who came before has a place of no plan"
    execution = shop.launch(after=40 * 60)
    await world.step(controller)
    gone = placeholders(world)[0]["metadata"]
    world.cluster.remove(PODS, gone["name"], namespace=gone["namespace"])
    await keep(world)
    await keep(world)
    assert len(placeholders(world)) == 2
    type(execution).objects.filter(pk=execution.pk).update(slots_freed_at=world.now)
    await keep(world)
    assert len(placeholders(world)) == 3


@in_world
async def test_duplicate_or_restarted_controllers_make_each_place_once(plan: RushPlan, shop: Shop) -> None:
    make_plan(shop, environment=shop.job, places=2)
    world = World()
    world.passes(45 * 60)
    await keep(world)
    names = {pod["metadata"]["name"] for pod in world.pods()}
    assert len(names) == 5, "two plans of a tier keep apart"
    for pod in world.pods()[::2]:
        world.cluster.remove(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])
    world.passes(60)
    await keep(world)
    await keep(world)
    assert {pod["metadata"]["name"] for pod in world.pods()} == names


@in_world
async def test_launch_takes_a_place_of_only_one_plan(plan: RushPlan, shop: Shop) -> None:
    make_plan(shop, environment=shop.job, places=2)
    world = World()
    controller = world.controller()
    world.passes(45 * 60)
    shop.launch(after=45 * 60)
    await world.step(controller)
    await keep(world)
    assert len(placeholders(world)) == 4


@pytest.mark.parametrize("how", ["removed", "tier archived", "off"])
@in_world
async def test_places_go_with_their_plan(plan: RushPlan, configure: Configure, how: str) -> None:
    world = World()
    world.passes(45 * 60)
    await keep(world)
    if how == "removed":
        plan.delete()
    elif how == "off":
        configure(WARM_PLACES, 0)
    else:
        HardwareTier.objects.update(is_archived=True)
    await keep(world)
    assert not world.pods()


@in_world
async def test_place_has_capacity_for_sidecars(plan: RushPlan, shop: Shop, settings: Settings) -> None:
    Project.objects.update(files=Project.Files.GIT)
    settings.EXECUTOR_CORES, settings.EXECUTOR_MEMORY = "50m", "128Mi"
    settings.FRONT_IMAGE, settings.FRONT_CORES, settings.FRONT_MEMORY = "nginx", "20m", "32Mi"
    RushPlan.objects.update(places=1)
    world = World()
    controller = world.controller()
    world.passes(45 * 60)
    await keep(world)
    (place,) = [decode(pod, Pod) for pod in placeholders(world)]
    execution = shop.launch(after=45 * 60)
    await world.step(controller)
    assert requested_amounts(place) == requested_amounts(decode(world.pod_of(execution), Pod))


def test_unreadable_plan_is_skipped_and_equal_requests_share_id() -> None:
    asked: dict[str, Any] = {"tier_id": "small", "environment_id": "a", "places": 3, "ready": "09:00", "until": "12:00"}
    assert plan_hours(RushPlan(**asked, zone="Nowhere/Here")) is None
    plans = [
        RushPlan(**asked, zone="UTC", days=["mon", "fri"], early_minutes=5),
        RushPlan(**asked, zone="UTC", days=["fri", "mon"], early_minutes=30),
        RushPlan(**asked, zone="UTC", on=date(2026, 3, 4)),
    ]
    ids = [plan_id(plan) for plan in plans]
    assert ids[0] == ids[1] != ids[2]
