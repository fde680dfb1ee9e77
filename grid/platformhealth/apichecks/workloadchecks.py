"""Checks of what on-demand clusters and the controller itself consist of."""

from datetime import UTC, datetime

from grid.core.errors import Conflict
from grid.core.translation import gettext as _
from grid.kube.resources import (
    AUTOSCALERS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    JOBS,
    LEASES,
    NETWORK_POLICIES,
    REPLICA_SETS,
)
from grid.platformhealth.apichecks.base import ApiCheck, check
from grid.platformhealth.apichecks.scratch import CheckFailed, Scratch, until


async def _deployment(scratch: Scratch) -> None:
    template = {"metadata": {"labels": scratch.labels}, "spec": scratch.pod_spec()}
    spec = {"replicas": 0, "selector": {"matchLabels": scratch.labels}, "template": template}
    await scratch.create(DEPLOYMENTS, "workers", spec=spec)
    patched = await scratch.api.patch(
        DEPLOYMENTS, scratch.name("workers"), {"spec": {"replicas": 1}}, namespace=scratch.namespace
    )
    if patched["spec"].get("replicas") != 1:
        raise CheckFailed(_("The size of a Deployment was changed, and is as before."))

    async def has_replica_set() -> bool:
        items = (await scratch.listed(REPLICA_SETS)).get("items") or []
        return any(one["spec"].get("replicas") == 1 for one in items)

    await until(
        has_replica_set,
        _("No controller made a ReplicaSet of the Deployment’s size within {seconds:.0f} s."),
        seconds=20.0,
    )


async def _autoscaler(scratch: Scratch) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": scratch.name("workers")}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    behaviour = {"scaleDown": {"stabilizationWindowSeconds": 300}}
    spec = {
        "scaleTargetRef": target,
        "minReplicas": 1,
        "maxReplicas": 2,
        "metrics": [{"type": "Resource", "resource": cpu}],
        "behavior": behaviour,
    }
    await scratch.create(AUTOSCALERS, "workers", spec=spec)
    read = (await scratch.get(AUTOSCALERS, "workers"))["spec"]
    kept = read.get("behavior", {}).get("scaleDown", {}).get("stabilizationWindowSeconds")
    if kept != 300 or not read.get("metrics"):
        raise CheckFailed(_("The autoscaler does not hold its metrics and behaviour."))
    await scratch.delete(AUTOSCALERS, "workers")


async def _budget(scratch: Scratch) -> None:
    selector = {"matchLabels": scratch.labels | {"head": "none"}}
    await scratch.create(DISRUPTION_BUDGETS, "head", spec={"minAvailable": 1, "selector": selector})


async def _policy(scratch: Scratch) -> None:
    """It selects our own pods alone, which never start."""
    spec = {"podSelector": {"matchLabels": scratch.labels}, "policyTypes": ["Ingress"], "ingress": []}
    await scratch.create(NETWORK_POLICIES, "apart", spec=spec)


async def _lease(scratch: Scratch) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    held = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": now}
    first = await scratch.create(LEASES, "lease", spec=held)
    name, space = scratch.name("lease"), scratch.namespace
    await scratch.api.replace(LEASES, name, first | {"spec": held | {"holderIdentity": "two"}}, namespace=space)
    try:
        await scratch.api.replace(LEASES, name, first | {"spec": held | {"holderIdentity": "three"}}, namespace=space)
    except Conflict:
        return
    raise CheckFailed(_("A write over somebody else’s newer one was not refused: two controllers could lead."))


async def _job(scratch: Scratch) -> None:
    template = {"spec": scratch.pod_spec() | {"restartPolicy": "Never"}}
    await scratch.create(JOBS, "build", spec={"suspend": True, "backoffLimit": 0, "template": template})


WORKLOAD_CHECKS: tuple[ApiCheck, ...] = (
    check("policies", _("Create a NetworkPolicy"), _policy, "create networkpolicies networking.k8s.io"),
    check("budgets", _("Create a PodDisruptionBudget"), _budget, "create poddisruptionbudgets policy"),
    check(
        "deployments",
        _("Create and resize a Deployment"),
        _deployment,
        "create deployments apps, patch deployments apps, list replicasets apps",
    ),
    check(
        "autoscalers",
        _("Create, read and delete a HorizontalPodAutoscaler"),
        _autoscaler,
        "create horizontalpodautoscalers autoscaling, get horizontalpodautoscalers autoscaling, "
        "delete horizontalpodautoscalers autoscaling",
    ),
    check(
        "leases",
        _("Refuse a stale write of a Lease"),
        _lease,
        "create leases coordination.k8s.io, update leases coordination.k8s.io",
    ),
    check("jobs", _("Create a suspended Job"), _job, "create jobs batch"),
)
