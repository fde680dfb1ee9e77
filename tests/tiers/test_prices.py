"""What an hour of a run costs, with what stands beside its program."""

from dataclasses import dataclass
from decimal import Decimal

import pytest
from django.test import override_settings

from grid.executions.prices import part_beside, price_beside
from grid.executions.request import draft
from grid.executions.spec import parse_spec
from grid.models import UsageInterval
from tests.controller.world import World, fresh, in_world
from tests.support.shop import NOW, Shop


@dataclass(frozen=True)
class _Asked:
    cores: str
    memory: str


@pytest.mark.parametrize(
    ("tier", "sidecars", "price"),
    [
        (_Asked("1", "4Gi"), [], "0"),
        (_Asked("1", "4Gi"), [_Asked("10m", "32Mi")], "0.0100"),  # a hundredth of its CPU, less of its memory
        (_Asked("8", "1Gi"), [_Asked("10m", "32Mi"), _Asked("50m", "96Mi")], "0.1250"),  # an eighth of its memory
        (_Asked("0", "0"), [_Asked("10m", "32Mi")], "0"),
    ],
)
def test_sidecars_cost_their_share_of_the_tier(tier: _Asked, sidecars: list[_Asked], price: str) -> None:
    assert price_beside(Decimal(1), tier, sidecars) == Decimal(price)


def test_sidecars_on_free_and_gpu_tiers_are_free() -> None:
    sidecars = [_Asked("50m", "64Mi")]
    assert price_beside(Decimal(0), _Asked("1", "4Gi"), sidecars) == 0
    assert price_beside(Decimal(10), _Asked("1", "4Gi"), sidecars, gpus=1) == 0
    assert part_beside({"cpu": 1000, "memory": 4, "pods": 1, "nvidia.com/gpu": 1}, {"cpu": 50}) == 0


@in_world
async def test_run_is_charged_for_tier_and_sidecars(shop: Shop) -> None:
    with override_settings(FRONT_IMAGE="nginx:1"):
        world, execution = World(), shop.launch()
    sidecar_price = parse_spec(execution).price_beside
    assert sidecar_price > 0
    assert execution.price_per_hour == execution.tier.cost_per_hour + sidecar_price
    controller = world.controller()
    await world.step(controller)
    world.schedule(world.pod_of(execution))
    await world.step(controller)
    assert fresh(execution).state == "preparing"
    assert UsageInterval.objects.get().price_per_hour == execution.price_per_hour


def test_a_cluster_costs_its_tiers_alone(shop: Shop) -> None:
    with override_settings(FRONT_IMAGE="nginx:1"):
        cluster = shop.launch_cluster()
    assert cluster.price_per_hour == cluster.tier.cost_per_hour
    assert parse_spec(cluster).price_beside == 0


def test_the_same_is_shown_before_a_launch(shop: Shop) -> None:
    with override_settings(FRONT_IMAGE="nginx:1"):
        (row,) = draft(shop.request(), now=NOW, execution_id="new")
    assert row.price_per_hour > row.tier.cost_per_hour
