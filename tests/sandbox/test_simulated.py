"""A whole embedded cluster whose containers are only simulated: many pods, new nodes, failures on demand."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grid.core.errors import GridError
from grid.sandbox.client import PODS, Client, Object
from grid.sandbox.cluster import EmbeddedClusterSettings, run_cluster
from grid.sandbox.controllers.autoscaler import AutoscalerSettings
from grid.sandbox.kubelet import FleetSettings
from grid.sandbox.pools import DEFAULT_POOLS, with_maximum
from tests.support.waiting import eventually

_NODES = "/api/v1/nodes"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_PODS = PODS.path("default")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    settings = EmbeddedClusterSettings(
        data=tmp_path / "data",
        port=0,
        kubeconfig=tmp_path / "kubeconfig",
        images=tmp_path / "images",
        pools=with_maximum(DEFAULT_POOLS, 10),
        autoscaler=replace(AutoscalerSettings(), scan_seconds=0.5),
        fleet=FleetSettings(boot_seconds=0.1, ready_seconds=0.1, simulated=True),
    )
    stop, ready = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(run_cluster(settings, stop, lambda url: ready.set()))
    await ready.wait()
    async with Client.from_kubeconfig(settings.kubeconfig) as client:
        yield client
    stop.set()
    await running


def container(play: str = "", image: str = "some/thing:1") -> Object:
    return {
        "name": "run",
        "image": image,
        "env": [{"name": "GRID_SIMULATE", "value": play}],
        "readinessProbe": {"httpGet": {"port": 8080}},
        "resources": {"requests": {"cpu": "500m"}},
    }


def pod(name: str, played: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [played], "restartPolicy": "Never"},
    }


async def status_of(client: Client, name: str) -> Object:
    status: Object = (await client.get(f"{_PODS}/{name}")).get("status") or {}
    return status


def state_of(status: Object) -> Object:
    states: Object = (status.get("containerStatuses") or [{}])[0].get("state") or {}
    return states


@pytest.mark.slow
async def test_many_pods_run_on_nodes_that_come_for_them(client: Client) -> None:
    labels = {"app": "many"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    spec = {"replicas": 120, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "many"}, "spec": spec}
    await with_retry(lambda: client.create(_DEPLOYMENTS, body))

    async def all_ready() -> bool:
        status = (await client.get(f"{_DEPLOYMENTS}/many")).get("status") or {}
        return status.get("readyReplicas") == 120

    await eventually(all_ready, "120 pods are ready")
    nodes = await client.list(_NODES)
    # A node of 8 cores has 7.91 to give, 15 of these; there were three nodes at the start.
    assert 120 / 15 <= len(nodes) <= 1 + 10


async def test_failures_come_on_demand(client: Client) -> None:
    plays = {
        "ends": container("ends=0.2"),
        "fails": container("ends=0.2 code=3"),
        "oom": container("oom=0.2"),
        "no-image": container(image="missing/thing:1"),
    }
    for name, played in plays.items():
        await with_retry(lambda name=name, played=played: client.create(_PODS, pod(name, played)))  # type: ignore[misc]

    async def shown() -> bool:
        states = [state_of(await status_of(client, name)) for name in plays]
        return all(
            "terminated" in state or ("waiting" in state and "Pull" in str(state["waiting"])) for state in states
        )

    await eventually(shown, "all have failed in their way")
    ended = {name: state_of(await status_of(client, name)).get("terminated") or {} for name in plays}
    assert {name: state.get("exitCode") for name, state in ended.items()} == {
        "ends": 0,
        "fails": 3,
        "oom": 137,
        "no-image": None,
    }
    assert ended["oom"]["reason"] == "OOMKilled"


async def with_retry(act: Callable[[], Awaitable[Any]]) -> None:
    """The default service account is there a moment after the server."""
    deadline = time.monotonic() + 20
    while True:
        with contextlib.suppress(GridError):
            await act()
            return
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
