"""A whole embedded cluster whose containers are only simulated: many pods, new nodes, failures on demand."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from grid.core.errors import GridError
from grid.sandbox.client import PODS, Client, Object
from grid.sandbox.kubelet import FleetSettings
from grid.sandbox.pools import DEFAULT_POOLS
from tests.sandbox.machines import embedded_cluster
from tests.support.waiting import eventually

_NODES = "/api/v1/nodes"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_PODS = PODS.path("default")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    fleet = FleetSettings(boot_seconds=0.1, ready_seconds=0.1, simulated=True)
    async with (
        embedded_cluster(tmp_path, pools=DEFAULT_POOLS, fleet=fleet) as kubeconfig,
        Client.from_kubeconfig(kubeconfig) as client,
    ):
        yield client


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
