"""A launch before it happens: the same objects as afterwards, the pods that need room, and the place in the queue."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from grid.clusters.kind import HEAD_ADDRESS
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER
from grid.executions.launchrequest import LaunchRequest
from grid.executions.manifests import Manifest
from grid.executions.preview import Preview, place_in_queue
from grid.executions.request import draft, submit
from grid.executions.storage import DEFAULT_STORAGE
from grid.models import Execution, HardwareTier, Workspace
from tests.clusters.cluster_requests import alone, attached
from tests.support.shop import NOW, Shop

pytestmark = pytest.mark.django_db
ID = "0123456789ab"


def drafted(request: LaunchRequest) -> list[Execution]:
    return draft(request, now=NOW + timedelta(minutes=1), execution_id=ID)


def objects(unit: list[Execution]) -> list[Manifest]:
    return Preview.of(unit).objects(namespace="compute-grid", storage=DEFAULT_STORAGE, token="t")


@pytest.mark.parametrize("shape", ["workspace", "job", "cluster", "workspace with cluster"])
def test_the_previewed_objects_are_those_that_the_launch_creates(shop: Shop, shape: str) -> None:
    request = {
        "workspace": shop.request(),
        "job": shop.request(kind="job", environment=shop.job),
        "cluster": alone(shop),
        "workspace with cluster": attached(shop),
    }[shape]
    before = objects(drafted(request))
    assert (Execution.objects.count(), Workspace.objects.count()) == (0, 0)
    submit(request, now=NOW, execution_id=ID)
    rows = list(Execution.objects.order_by("attached_to"))
    rows.sort(key=lambda row: row.attached_to_id is not None)
    assert before == objects(rows)
    assert (f"{HEAD_ADDRESS}" in str(before)) is ("cluster" in shape)
    kinds = [one.resource.kind for one in before]
    assert kinds.count("PersistentVolumeClaim") == (1 if shape == "cluster" else 2)


def test_the_pods_are_those_of_the_start_with_what_their_tiers_request(shop: Shop, worker_tier: HardwareTier) -> None:
    (pod,) = Preview.of(drafted(shop.request())).pods()
    assert (pod.tier, pod.pool, pod.count, pod.requests["pods"]) == (shop.tier.name, shop.tier.node_pool, 1, 1)
    pods = Preview.of(drafted(attached(shop, tier=worker_tier))).pods()
    assert [(one.tier, one.count) for one in pods] == [(shop.tier.name, 1), (shop.tier.name, 1), (worker_tier.name, 2)]


def test_the_tolerations_of_a_tier_with_gpus_count(shop: Shop) -> None:
    HardwareTier.objects.update(gpus=1, gpu_resource="nvidia.com/gpu")
    (pod,) = Preview.of(drafted(shop.request())).pods()
    assert pod.requests["nvidia.com/gpu"] == 1
    assert [(one.key, one.operator) for one in pod.tolerations] == [("nvidia.com/gpu", "Exists")]


def test_who_has_free_slots_stands_in_no_queue(shop: Shop) -> None:
    assert place_in_queue(drafted(shop.request())) is None


def test_who_uses_all_slots_queues_behind_what_waits_already(shop: Shop, configure: Callable[[Any, int], None]) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    shop.launch()
    Execution.objects.update(slots_reserved_at=NOW, state="running")
    shop.launch()
    place = place_in_queue(drafted(shop.request()))
    assert place is not None
    assert (place.position, place.for_good) == (2, False)
    assert "You use 1 of 1 slots" in place.message
    assert "Stop something" in place.sooner


def test_a_full_tier_is_queued_for_and_another_tier_advised(shop: Shop) -> None:
    HardwareTier.objects.update(maximum_simultaneous=1)
    shop.launch(shop.people.teammate)
    Execution.objects.update(slots_reserved_at=NOW, state="running")
    place = place_in_queue(drafted(shop.request()))
    assert place is not None
    assert (place.position, place.for_good, place.sooner) == (1, False, "Choose another tier to start sooner.")


def test_what_is_larger_than_a_limit_would_never_leave_the_queue(
    shop: Shop, configure: Callable[[Any, int], None]
) -> None:
    HardwareTier.objects.update(maximum_simultaneous=1)
    two_places = place_in_queue(drafted(attached(shop)))
    assert two_places is not None
    assert two_places.for_good
    HardwareTier.objects.update(maximum_simultaneous=None)
    configure(MAXIMUM_EXECUTIONS_PER_USER, 3)
    many_slots = place_in_queue(drafted(alone(shop)))
    assert many_slots is not None
    assert (many_slots.for_good, many_slots.sooner) == (True, "")


def test_where_launching_is_switched_off_nothing_is_advised(shop: Shop, configure: Callable[[Any, int], None]) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 0)
    place = place_in_queue(drafted(shop.request()))
    assert place is not None
    assert (place.sooner, place.for_good) == ("", False)
    assert "Launching is switched off" in place.message
