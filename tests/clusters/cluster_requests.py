"""Requests for a cluster, by itself or with a workspace, and what is said against them."""

from typing import Any

from grid.diagnosis.launchfit import Pools
from grid.executions.launchrequest import LaunchRequest
from grid.executions.request import validate
from tests.support.shop import Shop


def alone(shop: Shop, **changes: Any) -> LaunchRequest:
    cluster = shop.cluster_request(**changes)
    return shop.request(kind="cluster", environment=cluster.environment, tier=cluster.tier, cluster=cluster)


def attached(shop: Shop, **changes: Any) -> LaunchRequest:
    return shop.request(cluster=shop.cluster_request(**changes))


def problems_of(request: LaunchRequest, pools: Pools | None = None) -> dict[str, str]:
    """The problems by field."""
    return {problem.path: problem.message for problem in validate(request, pools=pools)}
