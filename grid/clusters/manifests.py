"""The Kubernetes objects of a cluster, built from its frozen spec alone, in two steps: the workers must know the address of the head's
Service, which Kubernetes assigns when the Service is created.

Everything is owned by the anchor and named after the execution, so deleting the anchor deletes everything and a retry finds existing
objects. The number of workers is the autoscaler's once it exists: the workers' Deployment is created, never applied again.
"""

from collections.abc import Mapping
from typing import Any

from grid.clusters import policies
from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import LOCAL_PATH, Port, Program
from grid.core.labels import APP_COMPONENT, HEAD, KEYS, WORKER, label_value
from grid.executions.manifests import (
    GRACE_SECONDS,
    NO_SECRETS,
    Manifest,
    anchor,
    container,
    labels_of,
    metadata,
    placement,
    pod_decoration,
    secret,
    stored_secrets,
    volume_claims,
)
from grid.executions.spec import ClusterSpec, ExecutionSpec, ScalingSpec, TierSpec
from grid.executions.storage import DEFAULT_STORAGE, Storage, scratch, volumes
from grid.executions.variables import variables
from grid.kube.objects import RawObject
from grid.kube.resources import AUTOSCALERS, DEPLOYMENTS, DISRUPTION_BUDGETS, SERVICES

WANTED_WORKERS = "compute_grid_wanted_workers"
WANTED_WORKERS_LABEL = "execution-id"
_LOCAL = "local"
# After the drain: time for the program to end and to write its last lines.
_AFTER_DRAIN_SECONDS = 15
# Kubernetes' value for "no deadline". Nodes may take long to start; our own timeouts decide, not the Deployment.
_NO_DEADLINE = 2**31 - 1


def head_name(cluster_id: str) -> str:
    return f"cluster-{cluster_id}-head"


def head_service_name(cluster_id: str) -> str:
    return f"cluster-{cluster_id}-head"


def worker_name(cluster_id: str) -> str:
    """Return the name of the workers' Deployment and of its autoscaler."""
    return f"cluster-{cluster_id}-worker"


def worker_replicas(spec: ExecutionSpec) -> int:
    """Return the number of workers that a cluster starts with."""
    return _cluster(spec).workers_minimum


def first(
    spec: ExecutionSpec,
    *,
    namespace: str,
    anchor_uid: str = "",
    storage: Storage = DEFAULT_STORAGE,
    secrets: Mapping[str, str] = NO_SECRETS,
) -> list[Manifest]:
    """Return the objects that need no address of the head, in the order of creation: policies before the pods that they are for."""
    head = framework(_cluster(spec).framework).head(spec)
    return [
        anchor(spec, namespace=namespace),
        *volume_claims(spec, namespace=namespace, storage=storage),
        *secret(spec, namespace=namespace, anchor_uid=anchor_uid),
        *stored_secrets(spec, namespace=namespace, anchor_uid=anchor_uid, values=secrets),
        Manifest(SERVICES, _service(spec, head.ports, metadata(spec, namespace, anchor_uid, name=_head(spec)))),
        *policies.build(spec, _cluster(spec), namespace=namespace, anchor_uid=anchor_uid),
        Manifest(DISRUPTION_BUDGETS, _budget(spec, metadata(spec, namespace, anchor_uid, name=_head(spec)))),
        Manifest(DEPLOYMENTS, _head_deployment(spec, head, metadata(spec, namespace, anchor_uid, name=_head(spec)))),
    ]


def workers(spec: ExecutionSpec, *, namespace: str, anchor_uid: str, head_address: str) -> list[Manifest]:
    """Return the workers' Deployment, and its autoscaler if it has one."""
    program = framework(_cluster(spec).framework).worker(spec, head_address)
    named = metadata(spec, namespace, anchor_uid, name=worker_name(spec.id))
    made = [Manifest(DEPLOYMENTS, _worker_deployment(spec, program, named))]
    if is_autoscaled(spec):
        body = autoscaler_body(spec, namespace=namespace, anchor_uid=anchor_uid)
        made.append(Manifest(AUTOSCALERS, body))
    return made


def is_autoscaled(spec: ExecutionSpec) -> bool:
    """Return True when the cluster has an autoscaler with a metric: without one Kubernetes would add its default, 80 % of CPU."""
    scaling = _cluster(spec).scaling
    return scaling.autoscale and bool(_metrics(spec.id, scaling))


def autoscaler_body(spec: ExecutionSpec, *, namespace: str, anchor_uid: str = "") -> RawObject:
    cluster = _cluster(spec)
    return {
        "apiVersion": AUTOSCALERS.api_version,
        "kind": AUTOSCALERS.kind,
        "metadata": metadata(spec, namespace, anchor_uid, name=worker_name(spec.id)),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": DEPLOYMENTS.api_version,
                "kind": DEPLOYMENTS.kind,
                "name": worker_name(spec.id),
            },
            "minReplicas": cluster.workers_minimum,
            "maxReplicas": cluster.workers_maximum,
            "metrics": _metrics(spec.id, cluster.scaling),
            "behavior": _behavior(cluster.scaling),
        },
    }


def _cluster(spec: ExecutionSpec) -> ClusterSpec:
    if spec.cluster is None:
        raise ValueError(f"{spec.object_name} is not a cluster.")
    return spec.cluster


def _head(spec: ExecutionSpec) -> str:
    return head_name(spec.id)


def _selector(spec: ExecutionSpec, component: str) -> dict[str, str]:
    return {KEYS.execution: spec.id, APP_COMPONENT: component}


def _service(spec: ExecutionSpec, ports: tuple[Port, ...], named: dict[str, Any]) -> RawObject:
    return {
        "apiVersion": "v1",
        "kind": SERVICES.kind,
        "metadata": named,
        "spec": {
            "type": "ClusterIP",
            "selector": _selector(spec, HEAD),
            "ports": [
                {"name": port.name, "port": port.number, "targetPort": port.target, "protocol": "TCP"} for port in ports
            ],
            "publishNotReadyAddresses": False,
        },
    }


def _budget(spec: ExecutionSpec, named: dict[str, Any]) -> RawObject:
    """Return a budget that keeps the head from being evicted while it is ready; an unready head blocks no drain of its node."""
    return {
        "apiVersion": DISRUPTION_BUDGETS.api_version,
        "kind": DISRUPTION_BUDGETS.kind,
        "metadata": named,
        "spec": {
            "minAvailable": 1,
            "selector": {"matchLabels": _selector(spec, HEAD)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _head_deployment(spec: ExecutionSpec, program: Program, named: dict[str, Any]) -> RawObject:
    local = {"name": _LOCAL, **scratch(_cluster(spec).head_tier)}
    pod = _pod_spec(spec, _cluster(spec).head_tier, program, local, GRACE_SECONDS)
    template = {"metadata": _pod_metadata(spec, HEAD, _cluster(spec).head_tier), "spec": pod}
    # Recreate, so that a new template never runs two heads: workers that join the new one while the old one answers would split the
    # cluster. A deleted head does end beside its successor, but the Service no longer leads to it, which the frameworks tolerate.
    return _deployment(named, _selector(spec, HEAD), 1, {"type": "Recreate"}, template)


def _worker_deployment(spec: ExecutionSpec, program: Program, named: dict[str, Any]) -> RawObject:
    cluster = _cluster(spec)
    local = _local_volume(spec, cluster)
    pod = _pod_spec(spec, spec.tier, program, local, cluster.drain_seconds + _AFTER_DRAIN_SECONDS)
    template = {"metadata": _pod_metadata(spec, WORKER, spec.tier), "spec": pod}
    # The template changes only when the head has a new address, and then no old worker is of use: all are replaced at once, never with
    # more pods than the slots allow.
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "100%"}}
    return _deployment(named, _selector(spec, WORKER), worker_replicas(spec), strategy, template)


def _deployment(
    named: dict[str, Any],
    selector: dict[str, str],
    replicas: int,
    strategy: dict[str, Any],
    template: dict[str, Any],
) -> RawObject:
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": named,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "strategy": strategy,
            "revisionHistoryLimit": 1,
            "progressDeadlineSeconds": _NO_DEADLINE,
            "template": template,
        },
    }


def _pod_metadata(spec: ExecutionSpec, component: str, tier: TierSpec) -> dict[str, Any]:
    labels = {**labels_of(spec), APP_COMPONENT: component, KEYS.tier: label_value(tier.id)}
    return pod_decoration(tier, labels, spec.title)


def _pod_spec(
    spec: ExecutionSpec, tier: TierSpec, program: Program, local: dict[str, Any], grace_seconds: int
) -> dict[str, Any]:
    return {
        "containers": [_container(spec, tier, program)],
        "volumes": [*volumes(spec, tier), local],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": grace_seconds,
        **placement(spec, tier),
    }


def _container(spec: ExecutionSpec, tier: TierSpec, program: Program) -> dict[str, Any]:
    run = container(spec, tier)
    run["command"] = list(program.command)
    run["env"] = _variables(spec, program)
    run["ports"] = [{"name": port.name, "containerPort": port.target, "protocol": "TCP"} for port in program.ports]
    run["volumeMounts"] = [*run["volumeMounts"], {"name": _LOCAL, "mountPath": LOCAL_PATH}]
    run["readinessProbe"] = dict(program.readiness)
    if program.liveness:
        run["livenessProbe"] = dict(program.liveness)
    if program.pre_stop:
        run["lifecycle"] = {"preStop": {"exec": {"command": list(program.pre_stop)}}}
    return run


def _variables(spec: ExecutionSpec, program: Program) -> list[dict[str, Any]]:
    pod_name = {"POD_NAME": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}}
    return variables(spec, {**pod_name, **{name: {"value": value} for name, value in program.variables.items()}})


def _local_volume(spec: ExecutionSpec, cluster: ClusterSpec) -> dict[str, Any]:
    """Return a volume of the worker's own, created and deleted with its pod; without a size, the node's scratch space."""
    if not cluster.local_storage:
        return {"name": _LOCAL, **scratch(spec.tier)}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": cluster.local_storage}}}
    template = {"metadata": {"labels": {**labels_of(spec), APP_COMPONENT: WORKER}}, "spec": claim}
    return {"name": _LOCAL, "ephemeral": {"volumeClaimTemplate": template}}


def _metrics(cluster_id: str, scaling: ScalingSpec) -> list[dict[str, Any]]:
    targets = {"cpu": scaling.target_cpu, "memory": scaling.target_memory}
    metrics: list[dict[str, Any]] = [
        {
            "type": "Resource",
            "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": percent}},
        }
        for name, percent in targets.items()
        if percent
    ]
    if scaling.on_demand:
        # A target of one per worker, so the number of workers follows the metric itself.
        selector = {"matchLabels": {WANTED_WORKERS_LABEL: cluster_id}}
        target = {"type": "AverageValue", "averageValue": "1"}
        external = {"metric": {"name": WANTED_WORKERS, "selector": selector}, "target": target}
        metrics.append({"type": "External", "external": external})
    return metrics


def _behavior(scaling: ScalingSpec) -> dict[str, Any]:
    up = [
        _scaling_policy("Pods", scaling.up_workers, scaling.up_period_seconds),
        _scaling_policy("Percent", scaling.up_percent, scaling.up_period_seconds),
    ]
    down = [_scaling_policy("Percent", scaling.down_percent, scaling.down_period_seconds)]
    # The scale-down delay is for loads that go up and down; demand is exact, so it needs none. But the delay belongs to the autoscaler
    # and not to a metric, so it stays when there is a target of CPU or memory as well.
    has_targets = scaling.target_cpu or scaling.target_memory
    patience = scaling.down_stabilisation_seconds if has_targets else 0
    return {
        "scaleUp": _rules(scaling.up_stabilisation_seconds, up),
        "scaleDown": _rules(patience, down),
    }


def _scaling_policy(kind: str, value: int, period: int) -> dict[str, Any]:
    return {"type": kind, "value": value, "periodSeconds": period}


def _rules(stabilisation: int, policies: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the rules of one direction: the policy that allows more wins, and a policy of 0 is left out; without any, scaling is
    disabled."""
    allowed = [policy for policy in policies if policy["value"]]
    return {
        "stabilizationWindowSeconds": stabilisation,
        "selectPolicy": "Max" if allowed else "Disabled",
        "policies": allowed or [{**policies[0], "value": 1}],
    }
