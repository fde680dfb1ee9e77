"""Checks of what on-demand clusters and the controller itself consist of."""

from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

from grid.core.errors import Conflict
from grid.core.translation import gettext as _
from grid.kube import resources
from grid.kube.objects import RawObject
from grid.platformhealth.apichecks.running import ApiCheck
from grid.platformhealth.apichecks.scratch import CheckFailed, Scratch, must_refuse, until


async def _deployment(scratch: Scratch) -> None:
    template = {"metadata": {"labels": scratch.labels}, "spec": scratch.pod_spec()}
    spec = {"replicas": 0, "selector": {"matchLabels": scratch.labels}, "template": template}
    await scratch.create(resources.DEPLOYMENTS, "workers", spec=spec)
    patched = await scratch.api.patch(
        resources.DEPLOYMENTS, scratch.name("workers"), {"spec": {"replicas": 1}}, namespace=scratch.namespace
    )
    if patched["spec"].get("replicas") != 1:
        raise CheckFailed(_("The size of a Deployment was changed, and is as before."))

    async def has_replica_set() -> bool:
        replica_sets = (await scratch.listed(resources.REPLICA_SETS)).get("items") or []
        return any(each["spec"].get("replicas") == 1 for each in replica_sets)

    otherwise = _("No controller made a ReplicaSet of the Deployment’s size within {seconds:.0f} s.")
    await until(has_replica_set, otherwise, seconds=20.0)


async def _autoscaler(scratch: Scratch) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": scratch.name("workers")}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    spec: RawObject = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 2}
    spec |= {"metrics": [{"type": "Resource", "resource": cpu}]}
    spec |= {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 300}}}
    await scratch.create(resources.AUTOSCALERS, "workers", spec=spec)
    read = (await scratch.get(resources.AUTOSCALERS, "workers"))["spec"]
    kept = read.get("behavior", {}).get("scaleDown", {}).get("stabilizationWindowSeconds")
    if kept != 300 or not read.get("metrics"):
        raise CheckFailed(_("The autoscaler does not hold its metrics and behaviour."))
    await scratch.delete(resources.AUTOSCALERS, "workers")


async def _budget(scratch: Scratch) -> None:
    selector = {"matchLabels": scratch.labels | {"head": "none"}}
    await scratch.create(resources.DISRUPTION_BUDGETS, "head", spec={"minAvailable": 1, "selector": selector})


async def _policy(scratch: Scratch) -> None:
    """It selects our own pods alone, which never start."""
    spec = {"podSelector": {"matchLabels": scratch.labels}, "policyTypes": ["Ingress"], "ingress": []}
    await scratch.create(resources.NETWORK_POLICIES, "apart", spec=spec)


async def _lease(scratch: Scratch) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    held = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": now}
    first = await scratch.create(resources.LEASES, "lease", spec=held)

    def replaced(holder: str) -> Coroutine[Any, Any, RawObject]:
        lease = first | {"spec": held | {"holderIdentity": holder}}
        return scratch.api.replace(resources.LEASES, scratch.name("lease"), lease, namespace=scratch.namespace)

    await replaced("two")
    otherwise = _("A write over somebody else’s newer one was not refused: two controllers could lead.")
    await must_refuse(replaced("three"), Conflict, otherwise)


async def _job(scratch: Scratch) -> None:
    template = {"spec": scratch.pod_spec() | {"restartPolicy": "Never"}}
    await scratch.create(resources.JOBS, "build", spec={"suspend": True, "backoffLimit": 0, "template": template})


WORKLOAD_CHECKS: tuple[ApiCheck, ...] = (
    ApiCheck("policies", _("Create a NetworkPolicy"), _policy, "create networkpolicies networking.k8s.io"),
    ApiCheck("budgets", _("Create a PodDisruptionBudget"), _budget, "create poddisruptionbudgets policy"),
    ApiCheck(
        "deployments",
        _("Create and resize a Deployment"),
        _deployment,
        "create deployments apps, patch deployments apps, list replicasets apps",
    ),
    ApiCheck(
        "autoscalers",
        _("Create, read and delete a HorizontalPodAutoscaler"),
        _autoscaler,
        "create horizontalpodautoscalers autoscaling, get horizontalpodautoscalers autoscaling, "
        "delete horizontalpodautoscalers autoscaling",
    ),
    ApiCheck(
        "leases",
        _("Refuse a stale write of a Lease"),
        _lease,
        "create leases coordination.k8s.io, update leases coordination.k8s.io",
    ),
    ApiCheck("jobs", _("Create a suspended Job"), _job, "create jobs batch"),
)
