"""What browser tests put on the stage; each scene runs inside the server's process."""

from datetime import UTC, datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import Client

from dashboard.nodes.pages import use_history
from grid.core.labels import NODE_POOL
from grid.kube.objects import RawObject
from grid.kube.resources import AUTOSCALERS, CONFIG_MAPS, EVENTS, LEASES, NODES, PODS
from grid.metrics.usage import Measured, Usage
from grid.models import User
from grid.models.dataplane import LOCAL
from tests.browser.server import Stage
from tests.support import builders
from tests.support.waiting import eventually

STATUS = """
autoscalerStatus: Running
nodeGroups:
- {name: default, health: {status: Healthy, cloudProviderTarget: %d, minSize: 1, maxSize: 5}}
- {name: default-gpu, health: {status: Healthy, cloudProviderTarget: %d, minSize: 0, maxSize: 2}}
"""


async def empty(stage: Stage) -> None:
    """No objects, everything answers, and the caches know it: after an outage they look again with a delay."""
    stage.cluster.available = True
    for resource in (PODS, NODES, EVENTS, CONFIG_MAPS, AUTOSCALERS, LEASES):
        for obj in stage.cluster.objects(resource):
            stage.cluster.remove(resource, obj["metadata"]["name"], namespace=obj["metadata"].get("namespace", ""))
    runtime = stage.runtime
    runtime.data_planes[LOCAL].controller._is_readable = False  # whether one works is not known, and so not said
    await eventually(
        lambda: (
            runtime.freshness().synced and not (runtime.freshness().error or len(runtime.nodes) or len(runtime.pods))
        )
    )
    list(runtime.contention.steps())
    use_history._use_histories.clear()  # of a Prometheus that a scene brought


async def session_of(stage: Stage, person: str) -> str:
    """As if they had logged in; the form has tests of its own, and took a third of the time of all the others."""

    def log_in() -> str:
        client = Client()
        client.force_login(User.objects.get(username=person))
        return client.cookies[settings.SESSION_COOKIE_NAME].value

    return await sync_to_async(log_in)()


async def put_node(stage: Stage, name: str, age_seconds: float = 3600, **arguments: Any) -> None:
    created = datetime.now(UTC) - timedelta(seconds=age_seconds)
    stage.cluster.put(NODES, builders.node(name, created=created, **arguments))


async def put_pod(stage: Stage, name: str, age_seconds: float = 600, **arguments: Any) -> None:
    created = datetime.now(UTC) - timedelta(seconds=age_seconds)
    stage.cluster.put(PODS, builders.pod(name, created=created, **arguments))


async def put_event(stage: Stage, name: str, about: dict[str, Any], age_seconds: float = 5, **arguments: Any) -> None:
    at = datetime.now(UTC) - timedelta(seconds=age_seconds)
    stage.cluster.put(EVENTS, builders.event(name, about=about, at=at, **arguments))


async def remove_node(stage: Stage, name: str) -> None:
    stage.cluster.remove(NODES, name)


async def answer(stage: Stage, available: bool) -> None:
    stage.cluster.available = available


async def group_targets(stage: Stage, default: int, gpu: int) -> None:
    data = {"status": STATUS % (default, gpu)}
    stage.cluster.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", data, namespace="kube-system"))


async def usage(stage: Stage, nodes: dict[str, list[int]], pods: dict[str, list[int]] | None = None) -> None:
    """Millicores and MiB by name."""

    def each(measured: dict[str, list[int]]) -> dict[str, Usage]:
        return {name: Usage(cpu, memory * 2**20) for name, (cpu, memory) in measured.items()}

    stage.measured = Measured(each(nodes), each(pods or {}))
    stage.runtime.usage.replace(stage.measured)
    stage.runtime.hub.publish("usage")


async def _nodes_of_a_day(stage: Stage) -> None:
    big = {"cpu": "8", "memory": "32Gi", "instance_type": "m5.2xlarge"}
    await put_node(stage, "platform-1", pool="platform", age_seconds=9 * 86400, **big)
    await put_node(stage, "default-7f4k2", age_seconds=3 * 3600, **big)
    mark = str(int((datetime.now(UTC) - timedelta(minutes=6)).timestamp()))
    taints = [{"key": "DeletionCandidateOfClusterAutoscaler", "value": mark, "effect": "PreferNoSchedule"}]
    await put_node(stage, "default-9x2mc", age_seconds=5 * 3600, taints=taints, **big)
    await put_node(stage, "default-b8w6q", age_seconds=40, ready=False, **big)
    lost = builders.condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    await put_node(stage, "default-zz9p1", age_seconds=86400, conditions=[lost], **big)
    gpu = {"cpu": "8", "memory": "61Gi", "instance_type": "p3.2xlarge", "extended": {"nvidia.com/gpu": "1"}}
    await put_node(stage, "default-gpu-k3v8d", pool="default-gpu", age_seconds=900, **gpu)


async def _pods_of_a_day(stage: Stage) -> tuple[RawObject, RawObject]:
    """The answer is the one that trains on a GPU and the one that waits for another."""
    replicated: dict[str, Any] = {
        "owner": {"kind": "ReplicaSet", "metadata": {"name": "set", "uid": "1"}, "apiVersion": "apps/v1"}
    }
    asked = {"cpu": "500m", "memory": "1Gi"}
    for name in ("controller-0", "web-5d9f8", "web-7c2b1"):
        await put_pod(stage, name, node="platform-1", phase="Running", ready=True, requests=asked, **replicated)
    for place in range(5):
        large = {"cpu": "1", "memory": "5Gi"}
        await put_pod(stage, f"workspace-{place}", node="default-7f4k2", phase="Running", ready=True, requests=large)
    await put_pod(stage, "app-shiny", node="default-9x2mc", phase="Running", ready=True, requests=asked, **replicated)
    wants = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    training = builders.pod("job-training", node="default-gpu-k3v8d", phase="Running", ready=True, requests=wants)
    stage.cluster.put(PODS, training)
    waiting = builders.pod("job-waiting", requests=wants, spec={"nodeSelector": {NODE_POOL: "default-gpu"}})
    stage.cluster.put(PODS, waiting)
    return training, waiting


async def working_day(stage: Stage) -> None:
    """Three pools with something of everything: busy, idle and marked, joining, lost, waiting pods, events."""
    await group_targets(stage, default=4, gpu=2)
    await _nodes_of_a_day(stage)
    training, waiting = await _pods_of_a_day(stage)
    await usage(
        stage,
        {
            "platform-1": [420, 2100],
            "default-7f4k2": [3900, 18000],
            "default-9x2mc": [90, 700],
            "default-gpu-k3v8d": [3700, 14100],
        },
    )
    scale_up = "pod triggered scale-up: [{default-gpu 1->2 (max: 2)}]"
    removed = "marked the node as toBeDeleted/unschedulable"
    refused = "pod didn't trigger scale-up: 2 Insufficient nvidia.com/gpu, 1 max node group size reached"
    for about, reason, message, age_seconds, count in (
        (waiting, "TriggeredScaleUp", scale_up, 20, 1),
        (builders.node("default-old42"), "ScaleDown", removed, 1900, 1),
        (training, "NotTriggerScaleUp", refused, 960, 7),
    ):
        arguments: dict[str, Any] = {
            "reason": reason,
            "message": message,
            "component": "cluster-autoscaler",
            "count": count,
        }
        await put_event(stage, reason.lower(), about, age_seconds=age_seconds, **arguments)
