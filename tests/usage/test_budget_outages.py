"""Budgets when what ended is not known yet: nobody is told of a line that was not reached, and each is told before what runs is stopped."""

import pytest

from grid.controller.downtime import Downtime
from grid.models import BudgetMonth, UsageInterval
from grid.usage.budgets.keeper import count
from tests.controller.world import World, fresh, in_world
from tests.platformhealth.test_running import comes_up, running as controlled
from tests.support.shop import NOW, Shop
from tests.support.virtual import passes
from tests.usage.budgeting import DAY, HOUR, MINUTE, budget, interval, notified, spend
from tests.usage.test_budgets import running


@in_world
async def test_usage_ended_without_a_leader_is_known_before_counting(shop: Shop) -> None:
    world, execution = World(), shop.launch()
    async with controlled(world):
        await comes_up(world, execution)
    UsageInterval.objects.update(price_per_hour=1)
    budget(shop, "40", at_stop="stop")
    spend(shop, "1")
    world.finish(world.pod_of(execution), 0)
    world.passes(2 * DAY.total_seconds())
    world.cluster.available = False
    async with controlled(world, away=Downtime("controller", NOW, world.now)):
        await passes(5)
        world.cluster.available = True
        await passes(90)
    month = BudgetMonth.objects.get()
    assert month.spent == 1
    assert month.stopped_at is None
    assert notified() == []


@pytest.mark.django_db
def test_stop_line_reached_by_mistake_is_told_anew_later(shop: Shop) -> None:
    runs = running(shop)
    budget(shop, "75", at_stop="stop")
    open_one = interval(runs, NOW - 80 * HOUR, None)
    count(None, now=NOW)
    assert len(notified("stopping_soon")) == 1
    UsageInterval.objects.filter(pk=open_one.pk).update(ended_at=NOW - 10 * HOUR, seconds=70 * 3600)
    count(None, now=NOW + 11 * MINUTE)
    spend(shop, "5")
    count(None, now=NOW + DAY)
    assert fresh(runs).stop_requested_at is None
    assert [len(notified()), len(notified("stopping_soon"))] == [4, 2]
    count(None, now=NOW + DAY + 10 * MINUTE)
    assert fresh(runs).stop_requested_at is not None
