"""What the overview's browser tests put on the stage: pools of many nodes in every state, and the controllers' Lease."""

from datetime import UTC, datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings

from grid.audit import entries as audit
from grid.controller.leader import LEASE
from grid.core.labels import TO_BE_DELETED_TAINT
from grid.kube.resources import LEASES, NODES, PODS
from grid.models import AuditEntry, HardwareTier, User
from grid.models.dataplane import LOCAL
from tests.browser import executing, scenes
from tests.browser.server import Stage
from tests.support import builders

SPECIAL: dict[int, dict[str, Any]] = {
    3: {"unschedulable": True},
    7: {"ready": False},
    11: {
        "conditions": [builders.condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting status.")]
    },
    15: {"taints": [{"key": TO_BE_DELETED_TAINT, "value": "1", "effect": "NoSchedule"}]},
}


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
        stage.cluster.put(NODES, builders.node(name, **size, **SPECIAL.get(number, {})))
        asked = {"cpu": f"{number * 7 % 17 * 900}m", "memory": "1Gi"}
        stage.cluster.put(PODS, builders.pod(f"p-{name}", node=name, phase="Running", ready=True, requests=asked))


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
