"""Whole clusters: an API server with controllers and one node, or everything that the embedded cluster has, and work for them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grid.sandbox.client import Client, Object, SystemClock
from grid.sandbox.cluster import EmbeddedClusterSettings, run_cluster
from grid.sandbox.controllers.manager import ControllerManager
from grid.sandbox.controllers.scaling.model import ScalingSettings
from grid.sandbox.controllers.scheduler import Scheduler
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet import Fleet, FleetSettings
from grid.sandbox.pools import NodePool
from tests.sandbox.support import api_server, make_deployment, running

# Works while the file is there, on one core as much as it gets.
_WORKER = """
import os, time
while True:
    if os.path.exists(os.environ["BUSY"]):
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            pass
    else:
        time.sleep(0.05)
"""


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
    places = {"data": folder / "data", "kubeconfig": folder / "kubeconfig", "images": folder / "images"}
    stop, ready = asyncio.Event(), asyncio.Event()
    cluster = run_cluster(EmbeddedClusterSettings(port=0, **places, **settings), stop, lambda url: ready.set())
    task = asyncio.create_task(cluster)
    await ready.wait()
    try:
        yield folder / "kubeconfig"
    finally:
        stop.set()
        await task


def busy_workers(busy: Path, cpu: str) -> Object:
    """A Deployment of one pod that works while that file exists."""
    deployment = make_deployment("worker", 1, cpu=cpu)
    spec = deployment["spec"]["template"]["spec"]
    spec["terminationGracePeriodSeconds"] = 1
    spec["containers"][0] |= {
        "image": "compute-grid/python:3.11",
        "command": ["python3", "-c", _WORKER],
        "env": [{"name": "BUSY", "value": str(busy)}],
    }
    return deployment


def worker_autoscaler(**spec: Any) -> Object:
    """Between one and three of those pods, at 60 % of the CPU that they ask for."""
    target = {"type": "Utilization", "averageUtilization": 60}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "worker"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            **spec,
        },
    }
