"""A launch before it is stored: its place in the queue, and what the gate says to it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER
from grid.diagnosis.launchfit import QueuePlace
from grid.executions.launchrequest import LaunchRequest
from grid.executions.request import draft
from grid.models import Execution, HardwareTier
from grid.queue import takeover
from grid.queue.launches import look_ahead
from tests.clusters.cluster_requests import alone, attached
from tests.support.shop import NOW, Shop

pytestmark = pytest.mark.django_db
Configure = Callable[[Any, int], None]


NEXT = NOW + timedelta(minutes=1)


def place_of(request: LaunchRequest) -> QueuePlace:
    place = look_ahead(draft(request, now=NEXT, execution_id="0123456789ab"), NEXT).place
    assert place is not None
    return place


def test_person_with_free_slots_stands_in_no_queue(shop: Shop) -> None:
    assert look_ahead(draft(shop.request(), now=NEXT, execution_id="0123456789ab"), NEXT).place is None


def test_person_without_free_slots_queues_behind_earlier_launches(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    shop.launch()
    Execution.objects.update(slots_reserved_at=NOW, state="running")
    shop.launch()
    place = place_of(shop.request())
    assert (place.position, place.for_good) == (2, False)
    assert "You use 1 of 1 slots" in place.message
    assert "Stop something" in place.sooner


def test_full_tier_is_queued_for_and_another_advised(shop: Shop) -> None:
    HardwareTier.objects.update(maximum_simultaneous=1)
    shop.launch(shop.people.teammate)
    Execution.objects.update(slots_reserved_at=NOW, state="running")
    place = place_of(shop.request())
    assert (place.position, place.for_good, place.sooner) == (1, False, "Choose another tier to start sooner.")


def test_launch_above_a_limit_would_never_leave_the_queue(shop: Shop, configure: Configure) -> None:
    HardwareTier.objects.update(maximum_simultaneous=1)
    assert place_of(attached(shop)).for_good
    HardwareTier.objects.update(maximum_simultaneous=None)
    configure(MAXIMUM_EXECUTIONS_PER_USER, 3)
    many_slots = place_of(alone(shop))
    assert (many_slots.for_good, many_slots.sooner) == (True, "")


def test_launch_stands_aside_while_queue_is_taken_over(shop: Shop) -> None:
    takeover.take_over(by=shop.people.operator, minutes=60, reason="A node burns", now=NOW)
    place = place_of(shop.request())
    assert (place.position, place.for_good) == (0, False)
    assert "decides by hand what starts" in place.message
