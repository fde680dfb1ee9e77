"""Placeholders on the embedded cluster: the autoscaler starts a node for them, and a launch takes their place at once."""

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from grid.core.errors import GridError
from grid.core.labels import NODE_POOL
from grid.executions.caches import AutoscalerCache, EventCache, PodCache
from grid.executions.context import Context, LaunchTarget
from grid.executions.spec import TierSpec
from grid.kube.credentials import CredentialSource
from grid.kube.http import HttpKubeApi
from grid.sandbox.client import PODS, Client, Object
from grid.sandbox.controllers.autoscaler import AutoscalerSettings
from grid.sandbox.kubelet import FleetSettings
from grid.sandbox.pools import DEFAULT_POOLS, NodePool
from grid.tiers.placeholders import PlaceholderKeeper
from grid.tiers.warmhours import DAYS, WantedPlaceholder, WarmHours, WarmTier
from tests.sandbox.machines import embedded_cluster
from tests.sandbox.support import make_pod
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow
CAPACITY = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"}
POOL = NodePool(name="warm", instance_type="small", capacity=CAPACITY, minimum=0, maximum=1)
TIER = TierSpec(
    id="small", name="Small", node_pool="warm", cores="1500m", cores_limit="1500m", memory="1Gi", memory_limit="1Gi"
)


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    """A simulated cluster with a pool that may have one node and has none."""
    autoscaler = replace(AutoscalerSettings(), scan_seconds=0.5)
    fleet = FleetSettings(boot_seconds=0.1, ready_seconds=0.1, simulated=True)
    pools = (DEFAULT_POOLS[0], POOL)
    async with embedded_cluster(tmp_path, pools=pools, autoscaler=autoscaler, fleet=fleet) as kubeconfig:
        yield kubeconfig


async def test_launch_replaces_a_placeholder_at_once(kubeconfig: Path) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    hours = WarmHours(frozenset(DAYS), datetime.min.time(), datetime.min.time(), ZoneInfo("UTC"))
    asked = [
        WantedPlaceholder(WarmTier(TIER, 1, hours), 1, until),
        WantedPlaceholder(WarmTier(TIER, 1, hours, "a", "python:3.11", "", {"cpu": 50, "memory": 2**26}), 1, until),
    ]

    async def database(*_: Any, **__: Any) -> Any:
        return asked

    api = HttpKubeApi(CredentialSource(str(kubeconfig)))
    caches = PodCache(str, lambda: until), EventCache(str), AutoscalerCache(str)  # type: ignore[arg-type]
    target = LaunchTarget("local", "default", str, front_key=str)
    context = Context(
        api,
        database,
        database,
        target,
        *caches,
        lambda: datetime.now(UTC),
        time.monotonic,
        remote_files=lambda spec: {},
        node_templates=dict,
    )
    keeper = PlaceholderKeeper(context)
    async with Client.from_kubeconfig(kubeconfig) as client:

        async def running(start: str) -> dict[str, str]:
            """Return the node of each running pod whose name begins so."""
            pods: list[Object] = await client.list(PODS.path("default"))
            return {
                pod["metadata"]["name"]: pod["spec"]["nodeName"]
                for pod in pods
                if pod["metadata"]["name"].startswith(start) and pod.get("status", {}).get("phase") == "Running"
            }

        async def both_warm() -> bool:
            return len(await running("warm-small-")) == 2

        async def kept() -> bool:
            with suppress(GridError):
                await keeper.run_once()
                return True
            return False

        async def launched() -> bool:
            return bool(await running("launch"))

        await eventually(kept, "the default service account, a moment after the server")
        await eventually(both_warm, "the autoscaler starts a node for the placeholders")
        nodes = set((await running("warm-small-")).values())
        requests = {"cpu": "1500m", "memory": "1Gi"}
        asks = make_pod("launch", requests=requests, nodeSelector={NODE_POOL: "warm"}, restartPolicy="Never")
        await client.create(PODS.path("default"), asks)
        await eventually(launched, "the launch starts where a placeholder was, for the pool cannot grow")
        assert set((await running("launch")).values()) == nodes
        assert len(await running("warm-small-")) == 1
        asked.clear()
        await keeper.run_once()
        await eventually(lambda: _none(client), "no placeholder is left")
    await api.close()


async def _none(client: Client) -> bool:
    names = [pod["metadata"]["name"] for pod in await client.list(PODS.path("default"))]
    return not any(name.startswith("warm-") for name in names)
