"""What many warm places at one time take, and plans for a rush: early placeholders that give way and go."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pytest_django.fixtures import Settings

from grid.configuration import WARM_PLACES
from grid.core.labels import PLACEHOLDER_CLASS, RUSH_PLAN
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, PodPlan
from grid.diagnosis.resources import requested_amounts
from grid.kube.objects import Pod, Taint
from grid.kube.resources import PODS
from grid.models import Environment, HardwareTier, Project, RushPlan
from grid.tiers.rush import (
    EARLIEST,
    MARGIN,
    UNMEASURED,
    ImageNodes,
    MeasuredTime,
    Rush,
    RushFacts,
    RushTimes,
    plan_rush,
)
from grid.tiers.rushplans import plan_hours, plan_id
from tests.controller.test_controller import Configure
from tests.controller.world import World, in_world
from tests.support.builders import decode
from tests.support.golden import assert_golden
from tests.support.shop import NOW, Shop
from tests.tiers.test_placeholders import keep

ASKED_AT = datetime(2026, 11, 26, 20, 0, tzinfo=UTC)
READY = datetime(2026, 11, 27, 9, 0, tzinfo=UTC)
TIMES = RushTimes(READY, READY + timedelta(hours=3))
EMPTY = {"cpu": 8000, "memory": 32 * 2**30, "pods": 100}
MEDIUM = PodPlan("Medium", "default", {"cpu": 2000, "memory": 8 * 2**30, "pods": 1}, count=40)
TAINT = Taint(key="gpu", value="", effect="NoSchedule")


def free(cores: int) -> dict[str, int]:
    return EMPTY | {"cpu": cores * 1000}


def nodes(count: int, cores: int = 8, **more: Any) -> AlikeNodes:
    """Nodes of 8 cores, four Medium each, of which so many cores are free."""
    return AlikeNodes(free(cores), EMPTY, count, **more)


def pool(*alike: AlikeNodes, maximum: int = 20, **more: Any) -> LaunchPool:
    return LaunchPool("default", alike, maximum, **more)


def facts(known: LaunchPool, places: int = 40, **more: Any) -> RushFacts:
    given: dict[str, Any] = {
        "most": 1000,
        "price": Decimal("0.20"),
        "node": MeasuredTime(240.0, 12),
        "pull": MeasuredTime(100.0, 12),
    }
    return RushFacts(known, replace(MEDIUM, count=places), **(given | more))


def asked(known: LaunchPool, places: int = 40, **more: Any) -> Rush:
    return plan_rush(facts(known, places, **more), TIMES, ASKED_AT)


@pytest.mark.parametrize(
    ("known", "fits_now", "new_nodes", "may_add", "short"),
    [
        (pool(nodes(10)), 40, 0, 10, 0),
        (pool(nodes(4)), 16, 6, 16, 0),
        (pool(nodes(4, cores=3), nodes(2)), 12, 7, 14, 0),
        (pool(nodes(4, takes_pods=False)), 0, 10, 16, 0),  # cordoned
        (pool(nodes(4, taints=(TAINT,)), nodes(1)), 4, 9, 15, 0),
        (pool(nodes(10, cores=2), maximum=0), 10, 8, 0, 30),
        (pool(remembered=nodes(1), seen="2026-11-20"), 0, 10, 20, 0),
        (pool(), 0, None, 20, 0),  # never seen a node
    ],
)
def test_places_count_free_capacity_and_then_new_nodes(
    known: LaunchPool, fits_now: int, new_nodes: int | None, may_add: int, short: int
) -> None:
    rush = asked(known)
    assert (rush.fits_now, rush.new_nodes, rush.may_add, rush.short) == (fits_now, new_nodes, may_add, short)
    assert not rush.refusals


REFUSED: dict[str, tuple[LaunchPool, dict[str, Any]]] = {
    "a maximum of 6 nodes": (pool(nodes(2, cores=0), maximum=6), {}),
    "no autoscaler": (pool(nodes(2), maximum=0), {}),
    "others in the pool": (pool(nodes(2, cores=0), maximum=10), {"pool_others": (replace(MEDIUM, count=8),)}),
    "nodes that are too small": (pool(AlikeNodes(free(1), free(1))), {}),
    "tainted nodes": (pool(nodes(9, taints=(TAINT,))), {}),
    "no node for ever": (pool(maximum=0), {}),
    "warm places turned off": (pool(nodes(10)), {"most": 0}),
    "30 warm places at most": (pool(nodes(10)), {"most": 30}),
    "50 warm places at most, and 20 others": (pool(nodes(10)), {"most": 50, "others": 20}),
    "9 warm places at most, and 20 others": (pool(nodes(10)), {"most": 9, "others": 20}),
}


def test_refusals_of_plans_are_as_stored() -> None:
    blocks = []
    for name, (known, more) in REFUSED.items():
        (refusal,) = asked(known, **more).refusals
        blocks.append(f"# {name}\n{refusal.sentence} {refusal.step}")
    assert_golden("words-of-rush-refusals", "\n".join(blocks), ending="txt")


@pytest.mark.parametrize(
    ("known", "more", "early", "is_measured"),
    [
        (pool(nodes(10)), {}, timedelta(minutes=6) + MARGIN, True),  # what is free now may be taken by then
        (pool(nodes(10), maximum=0), {}, MARGIN, True),
        (pool(nodes(10), maximum=0), {"images": ImageNodes(lack=("n1",))}, timedelta(minutes=2) + MARGIN, True),
        (
            pool(nodes(10), maximum=0),
            {"images": ImageNodes(unknown=("n1",)), "pull": MeasuredTime()},
            UNMEASURED,
            False,
        ),
        (pool(nodes(1)), {"node": MeasuredTime()}, UNMEASURED, False),
        (pool(nodes(1)), {"node": MeasuredTime(3e6, 5)}, EARLIEST, True),
        (
            pool(nodes(1)),
            {"pull": MeasuredTime(7200.0, 5), "node": MeasuredTime()},
            timedelta(minutes=120) + MARGIN,
            False,
        ),
    ],
)
def test_places_begin_as_early_as_was_measured(
    known: LaunchPool, more: dict[str, Any], early: timedelta, is_measured: bool
) -> None:
    rush = asked(known, **more)
    assert (rush.early, rush.is_measured) == (early, is_measured)
    assert rush.begins == READY - early
    assert rush.ready_at(ASKED_AT) == READY
    assert rush.ready_at(READY - early + timedelta(minutes=5)) == READY + timedelta(minutes=5), "too late to be ready"


def test_planner_decides_how_early_but_not_in_the_past() -> None:
    (refusal,) = plan_rush(facts(pool(nodes(10))), TIMES, TIMES.until).refusals
    assert "passed" in refusal.sentence and "yet to come" in refusal.step
    rush = plan_rush(facts(pool(nodes(1)), node=MeasuredTime()), replace(TIMES, early=timedelta(minutes=45)), ASKED_AT)
    assert (rush.early, rush.is_measured, rush.begins) == (timedelta(minutes=45), True, READY - timedelta(minutes=45))


def test_plan_cost_is_that_of_its_new_nodes() -> None:
    times = replace(TIMES, early=timedelta(minutes=30))
    rush = plan_rush(facts(pool(nodes(4))), times, ASKED_AT)
    assert (rush.per_node, rush.node_price, rush.span) == (4, Decimal("0.80"), timedelta(hours=3.5))
    assert rush.cost == 6 * Decimal("0.80") * Decimal("3.5")
    assert plan_rush(facts(pool(nodes(10))), times, ASKED_AT).cost == 0
    assert plan_rush(facts(pool(nodes(4)), price=Decimal(0)), times, ASKED_AT).cost is None
    assert plan_rush(facts(pool()), times, ASKED_AT).cost is None
    shared = asked(pool(nodes(10)), pool_others=(replace(MEDIUM, tier="Other", count=8),), others=8)
    assert (shared.fits_now, shared.new_nodes) == (32, 2), "the room of other warm places is not counted twice"


alike = st.builds(
    nodes, st.integers(1, 30), st.integers(0, 8), takes_pods=st.booleans(), taints=st.sampled_from([(), (TAINT,)])
)
pools = st.builds(
    lambda alike, maximum, is_remembered: LaunchPool(
        "default", tuple(alike), maximum, remembered=nodes(1) if is_remembered else None
    ),
    st.lists(alike, max_size=4),
    st.integers(0, 60),
    st.booleans(),
)
measures = st.builds(MeasuredTime, st.none() | st.floats(0, 10_000), st.integers(0, 9))


@given(pools, st.integers(1, 1000), st.integers(0, 40), measures, measures, st.integers(-300, 600))
def test_whatever_the_pool_the_numbers_agree(
    known: LaunchPool, places: int, others: int, node: MeasuredTime, pull: MeasuredTime, minutes: int
) -> None:
    now = READY - timedelta(minutes=minutes)
    pool_others = (replace(MEDIUM, count=others),) if others else ()
    asked_for = facts(known, places, pool_others=pool_others, others=others, node=node, pull=pull)
    rush = plan_rush(asked_for, TIMES, now)
    assert 0 <= rush.fits_now <= places and rush.may_add >= 0
    assert rush.begins == READY - rush.early and rush.early >= MARGIN and rush.span >= timedelta(0)
    if rush.new_nodes is not None:
        assert rush.fits_now + rush.per_node * rush.new_nodes >= places
        assert 0 <= rush.short <= places - rush.fits_now
        assert (rush.short > 0) == (rush.new_nodes > rush.may_add) or others, (
            "what is short is what the pool may not add"
        )
        assert rush.cost is not None and rush.cost >= 0
        more = plan_rush(
            facts(known, places + 1, pool_others=pool_others, others=others, node=node, pull=pull), TIMES, now
        )
        assert more.new_nodes is not None and more.new_nodes >= rush.new_nodes and more.fits_now >= rush.fits_now
    if not any("may have" in refusal.sentence or "no autoscaler" in refusal.sentence for refusal in rush.refusals):
        assert rush.short == 0 or any(alike.takes_pods for alike in known.nodes)


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
