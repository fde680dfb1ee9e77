"""A launch before it happens: the same objects as afterwards, and the pods that need room."""

from datetime import timedelta

import pytest

from grid.clusters.kind import HEAD_ADDRESS
from grid.executions.launchrequest import LaunchRequest
from grid.executions.manifests import Manifest
from grid.executions.preview import Preview
from grid.executions.request import draft, submit
from grid.executions.storage import DEFAULT_STORAGE
from grid.models import Execution, HardwareTier, Workspace
from grid.queue.launches import why_not_launch
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
    submit(request, gate=why_not_launch, now=NOW, execution_id=ID)
    rows = list(Execution.objects.order_by("attached_to"))
    rows.sort(key=lambda row: row.attached_to_id is not None)
    assert before == objects(rows)
    assert (f"{HEAD_ADDRESS}" in str(before)) is ("cluster" in shape)
    kinds = [manifest.resource.kind for manifest in before]
    assert kinds.count("PersistentVolumeClaim") == (1 if shape == "cluster" else 2)


def test_pods_are_those_started_with_their_tier_requests(shop: Shop, worker_tier: HardwareTier) -> None:
    (pod,) = Preview.of(drafted(shop.request())).pods()
    assert (pod.tier, pod.pool, pod.count, pod.requests["pods"]) == (shop.tier.name, shop.tier.node_pool, 1, 1)
    pods = Preview.of(drafted(attached(shop, tier=worker_tier))).pods()
    assert [(pod.tier, pod.count) for pod in pods] == [(shop.tier.name, 1), (shop.tier.name, 1), (worker_tier.name, 2)]
