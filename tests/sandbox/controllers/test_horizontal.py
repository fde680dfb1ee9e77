"""The HorizontalPodAutoscaler controller as a client of the API server; in the last test with real processes and their real usage."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from grid.sandbox.client import AUTOSCALERS, DEPLOYMENTS, EVENTS, PODS, Client, Object, condition_of
from grid.sandbox.controllers.horizontal import HorizontalController
from grid.sandbox.controllers.scaling.model import ScalingSettings
from tests.sandbox.machines import machine
from tests.sandbox.support import FastClock, api_server, make_deployment, make_pod, running
from tests.support.waiting import eventually

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
async def controlled(folder: Path) -> AsyncIterator[Client]:
    clock = FastClock(speed=20)
    async with (
        api_server(folder, clock) as client,
        running(HorizontalController(client, clock=clock, settings=ScalingSettings(sync_seconds=5))),
    ):
        yield client


def make_autoscaler(name: str, target: str, *, kind: str = "Deployment") -> Object:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": target}
    return {
        "apiVersion": AUTOSCALERS.api_version,
        "kind": AUTOSCALERS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"scaleTargetRef": reference, "minReplicas": 2, "maxReplicas": 4},
    }


async def with_reason(client: Client, name: str, kind: str, reason: str) -> Object:
    """The autoscaler once the condition has that reason."""
    path = AUTOSCALERS.path("default", name)
    return await eventually(
        lambda: client.get(path),
        holds=lambda autoscaler: (condition_of(autoscaler, kind) or {}).get("reason") == reason,
    )


async def events(client: Client, reason: str) -> list[Any]:
    listed = await client.list(EVENTS.path("default"))
    return [item["message"] for item in listed if item["reason"] == reason]


async def test_a_target_that_does_not_exist_is_told(tmp_path: Path) -> None:
    async with controlled(tmp_path) as client:
        await client.create(AUTOSCALERS.path("default"), make_autoscaler("gone", "absent"))
        await client.create(AUTOSCALERS.path("default"), make_autoscaler("strange", "x", kind="Wheel"))
        prefix = "the HPA controller was unable to get the target's current scale: "
        for name, problem in {
            "gone": 'deployments.apps "absent" not found',
            "strange": 'no matches for kind "Wheel" in group "apps"',
        }.items():
            autoscaler = await with_reason(client, name, "AbleToScale", "FailedGetScale")
            assert autoscaler["status"]["conditions"][0]["message"] == prefix + problem
            assert problem in await eventually(
                lambda: events(client, "FailedGetScale"), holds=lambda seen: len(seen) > 1
            )


async def test_two_autoscalers_of_the_same_pods_stop_each_other(tmp_path: Path) -> None:
    async with controlled(tmp_path) as client:
        await client.create(DEPLOYMENTS.path("default"), make_deployment("web", 2))
        pod = make_pod("web-1")
        pod["metadata"]["labels"] = {"app": "web"}
        await client.create(PODS.path("default"), pod)
        for name in ("first", "second"):
            await client.create(AUTOSCALERS.path("default"), make_autoscaler(name, "web"))
        for name in ("first", "second"):
            autoscaler = await with_reason(client, name, "ScalingActive", "AmbiguousSelector")
            assert "[default/first default/second]" in str(autoscaler["status"]["conditions"])
        await client.delete(AUTOSCALERS.path("default", "first"))
        await with_reason(client, "second", "ScalingActive", "FailedGetResourceMetric")


@pytest.mark.parametrize("option", ["--hpa-sync-seconds=0", "--hpa-down-seconds=-1"])
def test_a_period_that_makes_no_sense_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(CommandError, match="--hpa-sync-seconds must be above 0, and --hpa-down-seconds 0 or more"):
        call_command("sandbox", f"--data={tmp_path / 'data'}", option)
    assert not (tmp_path / "data").exists()


async def test_busy_workers_become_more_and_idle_ones_fewer(tmp_path: Path) -> None:
    settings = ScalingSettings(
        sync_seconds=1, down_seconds=3, cpu_initialisation_seconds=1, initial_readiness_seconds=1
    )
    busy = tmp_path / "busy"
    async with machine(tmp_path, settings) as client:
        await client.create(DEPLOYMENTS.path("default"), _workers(busy))
        scaler = make_autoscaler("worker", "worker")
        target = {"type": "Utilization", "averageUtilization": 60}
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        scaler["spec"] |= {"minReplicas": 1, "maxReplicas": 3, "metrics": [metric]}
        await client.create(AUTOSCALERS.path("default"), scaler)
        await with_reason(client, "worker", "ScalingActive", "ValidMetricFound")
        busy.touch()
        await _until_running(client, 3)
        reasons = await events(client, "SuccessfulRescale")
        assert any("cpu resource utilization (percentage of request) above target" in text for text in reasons)
        busy.unlink()
        await _until_running(client, 1)
        last = "New size: 1; reason: All metrics below target"
        await eventually(lambda: events(client, "SuccessfulRescale"), holds=lambda seen: last in seen)


def _workers(busy: Path) -> Object:
    # Little enough that three busy workers are all above their target, also where other programs leave them little of a core.
    deployment = make_deployment("worker", 1, cpu="30m")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["image"], container["command"] = "compute-grid/python:3.11", ["python3", "-c", _WORKER]
    container["env"] = [{"name": "BUSY", "value": str(busy)}]
    return deployment


async def _until_running(client: Client, count: int) -> None:
    def holds(pods: Any) -> bool:
        return [pod["status"].get("phase") for pod in pods] == ["Running"] * count

    await eventually(lambda: client.list(PODS.path("default")), holds=holds)
