"""What the tests of overview, charts and nodes put on the stage: nodes in every state, a Lease, a sampled day, and a node to drain."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings

from dashboard.nodes.pages import use_history
from grid.audit import entries as audit
from grid.controller.leader import LEASE
from grid.core.labels import TO_BE_DELETED_TAINT
from grid.kube.resources import DISRUPTION_BUDGETS, LEASES, NODES, PODS
from grid.metrics.usage import Measured, RecentUsage, Usage
from grid.models import AuditEntry, HardwareTier, NodeTask, PoolSample, User
from grid.models.dataplane import LOCAL
from grid.nodes.nodekeeper import NodeKeeper
from tests.browser import executing, scenes
from tests.browser.server import Stage
from tests.shell.charting import make_day
from tests.support.builders import NAMESPACE, condition, container_status, node, pod, stamp

SPECIAL: dict[int, dict[str, Any]] = {
    3: {"unschedulable": True},
    7: {"ready": False},
    11: {"conditions": [condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting status.")]},
    15: {"taints": [{"key": TO_BE_DELETED_TAINT, "value": "1", "effect": "NoSchedule"}]},
}
DRAINED_ID = "dddd2345ef"
_keepers: list[NodeKeeper] = []


async def renew_lease(stage: Stage, holder: str = "host-1") -> None:
    lease = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": LEASE, "namespace": settings.GRID_NAMESPACE},
        "spec": {"holderIdentity": holder, "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")},
    }
    stage.cluster.put(LEASES, lease)
    await stage.runtime.data_planes[LOCAL].controller.ask()


def let_lease_pass(stage: Stage) -> None:
    """As if it had not been renewed for a minute."""
    stage.runtime.data_planes[LOCAL].controller._changed_at -= 60


async def many_nodes(stage: Stage, pool: str, count: int, first: int = 0) -> None:
    """Nodes with one pod each, which asks for more from one node to the next, and then for little again; a few in special states."""
    size: dict[str, Any] = {"cpu": "16", "memory": "64Gi", "pool": pool}
    for number in range(first, first + count):
        name = f"{pool}-{number:04d}"
        stage.cluster.put(NODES, node(name, **size, **SPECIAL.get(number, {})))
        asked = {"cpu": f"{number * 7 % 17 * 900}m", "memory": "1Gi"}
        stage.cluster.put(PODS, pod(f"p-{name}", node=name, phase="Running", ready=True, requests=asked))


def _misconfigure() -> None:
    admin = User.objects.get(username="ada-admin")
    tier = HardwareTier.objects.create(id="huge", name="Huge", node_pool="default", cores="96", memory="768Gi")
    audit.record(actor=admin, instance=tier, action=AuditEntry.Action.CREATED)
    HardwareTier.objects.create(id="tpu", name="TPU", node_pool="tpu-v5", cores="4", memory="16Gi")


async def busy_day(stage: Stage) -> None:
    await executing.working_day(stage)
    await scenes.usage(stage, {"default-7f4k2": [3900, 18000]})
    await many_nodes(stage, "batch", 150)
    await many_nodes(stage, "batch-gpu", 12, first=20)
    await sync_to_async(_misconfigure)()
    await renew_lease(stage)


async def unsampled_day(stage: Stage) -> None:
    await busy_day(stage)
    await sync_to_async(PoolSample.objects.all().delete)()
    use_history._pool_histories.clear()  # what is kept of a scene before


async def sampled_day(stage: Stage) -> None:
    await unsampled_day(stage)
    await sync_to_async(make_day)(datetime.now(UTC))


async def half_an_hour_of_use(stage: Stage, nodes: dict[str, list[int]]) -> None:
    """What nodes used in each of the last minutes, in percent of 8 cores and of 32 GiB; the last minute is now."""
    usage = stage.runtime.usage
    usage.recent = RecentUsage()
    usage._monotonic = lambda: time.monotonic() + 3600  # which counts from the machine's start, a minute ago perhaps
    now = int(usage._monotonic() // 60)
    for ago in reversed(range(30)):
        usages = {}
        for name, percents in nodes.items():
            percent = percents[(29 - ago) * len(percents) // 30]
            usages[name] = Usage(80 * percent, 2**30 * 32 * (percent // 2 + 20) // 100)
        usage.recent.add(now - ago, usages)
    stage.measured = Measured(usages, {})
    usage.replace(stage.measured)
    stage.runtime.hub.publish(usage.name)


class _Prometheus:
    """A day of a pod or a node that works in waves."""

    def ask(self, query: str, first: int, last: int, step: int) -> dict[int, dict[str, float]]:
        return {
            minute: {
                "cpu_used": 1 + minute % 60 / 60,
                "cpu_requested": 1.0,
                "cpu_limit": 2.0,
                "memory_used": 3 * 2**30 + minute % 60 * 2**24,
                "memory_limit": 4 * 2**30,
                "read": minute % 7 * 2**20,
                "written": 2**19,
                "throttled": 12.5,
            }
            for minute in range(first, last + 1, step)
        }


async def used_pod(stage: Stage) -> None:
    """A pod whose container was killed ten minutes ago, and a Prometheus that knows it."""
    await scenes.working_day(stage)
    at = stamp(datetime.now(UTC) - timedelta(minutes=10))
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": at}}
    status = container_status(ready=True, restarts=1, lastState=killed)
    await scenes.put_pod(stage, "hungry", node="cpu-1", phase="Running", ready=True, statuses=[status])
    use_history._use_histories[:] = [use_history.UseHistory(stage.runtime, _Prometheus())]


async def busy_node(stage: Stage) -> None:
    await sync_to_async(NodeTask.objects.all().delete)()
    await executing.team(stage)
    await scenes.put_node(stage, name="node-a")
    await executing.put(stage, id=DRAINED_ID, state="running", title="Churn by month")
    await scenes.put_pod(stage, name="web-1", node="node-a", phase="Running", ready=True, labels={"app": "web"})
    await allow(stage, 0)
    _keepers[:] = [NodeKeeper(stage.cluster, _database, lambda: datetime.now(UTC))]


async def allow(stage: Stage, disruptions: int) -> None:
    status = {"disruptionsAllowed": disruptions, "desiredHealthy": 1, "currentHealthy": 1, "observedGeneration": 1}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    meta = {"name": "web", "namespace": NAMESPACE, "generation": 1}
    stage.cluster.put(DISRUPTION_BUDGETS, {"metadata": meta, "spec": spec, "status": status})


async def carry_out(stage: Stage) -> None:
    """As the controller does every two seconds."""
    await _keepers[0].run_once()


async def end_evicted(stage: Stage) -> None:
    """As their kubelet does."""
    for metadata in [body["metadata"] for body in stage.cluster.objects(PODS)]:
        if "deletionTimestamp" in metadata:
            stage.cluster.remove(PODS, metadata["name"], namespace=metadata["namespace"])


async def _database(work: Any, /, *args: Any, **kwargs: Any) -> Any:
    return await sync_to_async(work)(*args, **kwargs)
