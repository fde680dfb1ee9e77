"""Whole clusters: an API server with controllers and one node, or everything that the embedded cluster has."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grid.sandbox.client import Client, SystemClock
from grid.sandbox.cluster import EmbeddedClusterSettings, run_cluster
from grid.sandbox.controllers.manager import ControllerManager
from grid.sandbox.controllers.scaling.model import ScalingSettings
from grid.sandbox.controllers.scheduler import Scheduler
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet import Fleet, FleetSettings
from grid.sandbox.pools import NodePool
from tests.sandbox.support import api_server, running


@asynccontextmanager
async def machine(folder: Path, scaling: ScalingSettings | None = None) -> AsyncIterator[Client]:
    """API server, controllers, scheduler and one node that runs real processes."""
    pool = NodePool("small", "t", {"cpu": "8", "memory": "32Gi", "pods": "110"}, minimum=1, maximum=1, initial=1)
    settings = FleetSettings(boot_seconds=0.0, ready_seconds=0.0)
    (folder / "api").mkdir()
    async with api_server(folder / "api", SystemClock()) as client:
        images = ImageStore(folder / "images")
        fleet = Fleet(client, data_dir=folder / "machine", images=images, pools=[pool], settings=settings)
        await fleet.start()
        try:
            async with running(ControllerManager(client, scaling=scaling), Scheduler(client)):
                yield client
        finally:
            await fleet.stop()


@asynccontextmanager
async def embedded_cluster(folder: Path, **settings: Any) -> AsyncIterator[Path]:
    """The kubeconfig of a cluster with all its parts."""
    places: dict[str, Any] = {"data": folder / "data", "kubeconfig": folder / "kubeconfig", "images": folder / "images"}
    stop, ready = asyncio.Event(), asyncio.Event()
    cluster = run_cluster(EmbeddedClusterSettings(port=0, **places, **settings), stop, lambda url: ready.set())
    task = asyncio.create_task(cluster)
    await ready.wait()
    try:
        yield folder / "kubeconfig"
    finally:
        stop.set()
        await task
