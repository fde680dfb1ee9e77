"""The Kubernetes objects of a cluster, built from its frozen spec alone, in two steps: the workers must know the address of the head's
Service, which Kubernetes assigns when it is created.

Everything is owned by the anchor and named after the execution, so deleting the anchor deletes everything and a retry finds existing
objects. The autoscaler owns the number of workers: their Deployment is created, never applied again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import LOCAL_PATH, Port, Program, cluster_of
from grid.core.labels import APP_COMPONENT, HEAD, KEYS, WORKER, label_value
from grid.executions import manifests
from grid.executions.policykeeper import build_policy, system_peer
from grid.executions.spec import ClusterSpec, ExecutionSpec, ScalingSpec, TierSpec
from grid.executions.storage import DEFAULT_STORAGE, Storage, scratch, volumes
from grid.executions.variables import variables
from grid.kube.objects import RawObject
from grid.kube.resources import AUTOSCALERS, DEPLOYMENTS, DISRUPTION_BUDGETS, SERVICES, Resource

WANTED_WORKERS = "compute_grid_wanted_workers"
WANTED_WORKERS_LABEL = "execution-id"
_LOCAL = "local"
# After the drain: time for the program to end and to write its last lines.
_AFTER_DRAIN_SECONDS = 15
# Kubernetes' value for "no deadline". Nodes may take long to start; our own timeouts decide, not the Deployment.
_NO_DEADLINE = 2**31 - 1


def head_name(cluster_id: str) -> str:
    """Return the name of the head's Deployment, of its Service and of its budget."""
    return f"cluster-{cluster_id}-head"


def worker_name(cluster_id: str) -> str:
    """Return the name of the workers' Deployment and of its autoscaler."""
    return f"cluster-{cluster_id}-worker"


def first(
    spec: ExecutionSpec,
    *,
    namespace: str,
    anchor_uid: str = "",
    storage: Storage = DEFAULT_STORAGE,
    secrets: Mapping[str, str] = manifests.NO_SECRETS,
) -> list[manifests.Manifest]:
    """Return the objects that need no address of the head, in the order of creation: policies before the pods that they are for."""
    head = framework(cluster_of(spec).framework).head(spec)
    named = manifests.metadata(spec, namespace, anchor_uid, name=head_name(spec.id))
    return [
        manifests.anchor(spec, namespace=namespace),
        *manifests.volume_claims(spec, namespace=namespace, storage=storage),
        *manifests.secret(spec, namespace=namespace, anchor_uid=anchor_uid),
        *manifests.stored_secrets(spec, namespace=namespace, anchor_uid=anchor_uid, values=secrets),
        _manifest(SERVICES, named, _service(spec, head.ports)),
        *_policies(spec, namespace=namespace, anchor_uid=anchor_uid),
        _manifest(DISRUPTION_BUDGETS, named, _budget(spec)),
        _manifest(DEPLOYMENTS, named, _head_deployment(spec, head)),
    ]


def workers(spec: ExecutionSpec, *, namespace: str, anchor_uid: str, head_address: str) -> list[manifests.Manifest]:
    program = framework(cluster_of(spec).framework).worker(spec, head_address)
    named = manifests.metadata(spec, namespace, anchor_uid, name=worker_name(spec.id))
    deployment = _manifest(DEPLOYMENTS, named, _worker_deployment(spec, program))
    return [deployment, _manifest(AUTOSCALERS, named, _autoscaler(spec))] if is_autoscaled(spec) else [deployment]


def is_autoscaled(spec: ExecutionSpec) -> bool:
    """Return True when the cluster has an autoscaler with a metric: without one Kubernetes would add its default, 80 % of CPU."""
    scaling = cluster_of(spec).scaling
    return scaling.autoscale and bool(_metrics(spec.id, scaling))


def _manifest(resource: Resource, named: dict[str, Any], spec: dict[str, Any]) -> manifests.Manifest:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": named, "spec": spec}
    return manifests.Manifest(resource, body)


def _autoscaler(spec: ExecutionSpec) -> dict[str, Any]:
    cluster = cluster_of(spec)
    target = {"apiVersion": DEPLOYMENTS.api_version, "kind": DEPLOYMENTS.kind, "name": worker_name(spec.id)}
    return {
        "scaleTargetRef": target,
        "minReplicas": cluster.workers_minimum,
        "maxReplicas": cluster.workers_maximum,
        "metrics": _metrics(spec.id, cluster.scaling),
        "behavior": _behavior(cluster.scaling),
    }


def _selector(spec: ExecutionSpec, component: str) -> dict[str, str]:
    return {KEYS.execution: spec.id, APP_COMPONENT: component}


def _service(spec: ExecutionSpec, ports: Sequence[Port]) -> dict[str, Any]:
    return {
        "type": "ClusterIP",
        "selector": _selector(spec, HEAD),
        "ports": [
            {"name": each.name, "port": each.number, "targetPort": each.target, "protocol": "TCP"} for each in ports
        ],
        "publishNotReadyAddresses": False,
    }


def _budget(spec: ExecutionSpec) -> dict[str, Any]:
    """Return a budget that keeps the head from being evicted while it is ready; an unready head blocks no drain of its node."""
    selector = {"matchLabels": _selector(spec, HEAD)}
    return {"minAvailable": 1, "selector": selector, "unhealthyPodEvictionPolicy": "AlwaysAllow"}


def _head_deployment(spec: ExecutionSpec, program: Program) -> dict[str, Any]:
    tier = cluster_of(spec).head_tier
    template = _template(spec, HEAD, tier, program, {"name": _LOCAL, **scratch(tier)}, manifests.GRACE_SECONDS)
    # Recreate, so that a new template never runs two heads: workers that join the new one while the old one answers would split the
    # cluster. A deleted head does end beside its successor, but the Service no longer leads to it, which the frameworks tolerate.
    return _deployment(spec, HEAD, 1, {"type": "Recreate"}, template)


def _worker_deployment(spec: ExecutionSpec, program: Program) -> dict[str, Any]:
    cluster = cluster_of(spec)
    local, grace_seconds = _local_volume(spec, cluster), cluster.drain_seconds + _AFTER_DRAIN_SECONDS
    template = _template(spec, WORKER, spec.tier, program, local, grace_seconds)
    # The template changes only when the head has a new address, and then no old worker is of use: all are replaced at once, never with
    # more pods than the slots allow.
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "100%"}}
    return _deployment(spec, WORKER, cluster.workers_minimum, strategy, template)


def _deployment(
    spec: ExecutionSpec, component: str, replicas: int, strategy: dict[str, Any], template: dict[str, Any]
) -> dict[str, Any]:
    return {
        "replicas": replicas,
        "selector": {"matchLabels": _selector(spec, component)},
        "strategy": strategy,
        "revisionHistoryLimit": 1,
        "progressDeadlineSeconds": _NO_DEADLINE,
        "template": template,
    }


def _template(
    spec: ExecutionSpec, component: str, tier: TierSpec, program: Program, local: dict[str, Any], grace_seconds: int
) -> dict[str, Any]:
    labels = {**manifests.labels_of(spec), APP_COMPONENT: component, KEYS.tier: label_value(tier.id)}
    pod = {
        "containers": [_container(spec, tier, program)],
        "volumes": [*volumes(spec, tier), local],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": grace_seconds,
        **manifests.placement(spec, tier),
    }
    return {"metadata": manifests.pod_decoration(tier, labels, spec.title), "spec": pod}


def _container(spec: ExecutionSpec, tier: TierSpec, program: Program) -> dict[str, Any]:
    run = manifests.container(spec, tier)
    run["command"] = list(program.command)
    pod_name = {"POD_NAME": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}}
    run["env"] = variables(spec, pod_name | {name: {"value": value} for name, value in program.variables.items()})
    run["ports"] = [{"name": port.name, "containerPort": port.target, "protocol": "TCP"} for port in program.ports]
    run["volumeMounts"] = [*run["volumeMounts"], {"name": _LOCAL, "mountPath": LOCAL_PATH}]
    run["readinessProbe"] = dict(program.readiness)
    if program.liveness:
        run["livenessProbe"] = dict(program.liveness)
    if program.pre_stop:
        run["lifecycle"] = {"preStop": {"exec": {"command": list(program.pre_stop)}}}
    return run


def _local_volume(spec: ExecutionSpec, cluster: ClusterSpec) -> dict[str, Any]:
    """Return a volume of the worker's own, created and deleted with its pod; without a size, the node's scratch space."""
    if not cluster.local_storage:
        return {"name": _LOCAL, **scratch(spec.tier)}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": cluster.local_storage}}}
    template = {"metadata": {"labels": {**manifests.labels_of(spec), APP_COMPONENT: WORKER}}, "spec": claim}
    return {"name": _LOCAL, "ephemeral": {"volumeClaimTemplate": template}}


def _metrics(cluster_id: str, scaling: ScalingSpec) -> list[dict[str, Any]]:
    targets = {"cpu": scaling.target_cpu, "memory": scaling.target_memory}
    metrics: list[dict[str, Any]] = []
    for name, percent in targets.items():
        if percent:
            resource = {"name": name, "target": {"type": "Utilization", "averageUtilization": percent}}
            metrics.append({"type": "Resource", "resource": resource})
    if scaling.on_demand:
        # A target of one per worker, so the number of workers follows the metric itself.
        selector = {"matchLabels": {WANTED_WORKERS_LABEL: cluster_id}}
        target = {"type": "AverageValue", "averageValue": "1"}
        external = {"metric": {"name": WANTED_WORKERS, "selector": selector}, "target": target}
        metrics.append({"type": "External", "external": external})
    return metrics


def _behavior(scaling: ScalingSpec) -> dict[str, Any]:
    up = {"Pods": scaling.up_workers, "Percent": scaling.up_percent}
    # The scale-down delay is for loads that go up and down; demand is exact, so it needs none. But the delay belongs to the autoscaler
    # and not to a metric, so it stays when there is a target of CPU or memory as well.
    patience = scaling.down_stabilisation_seconds if scaling.target_cpu or scaling.target_memory else 0
    return {
        "scaleUp": _rules(scaling.up_stabilisation_seconds, up, scaling.up_period_seconds),
        "scaleDown": _rules(patience, {"Percent": scaling.down_percent}, scaling.down_period_seconds),
    }


def _rules(stabilisation: int, limits: Mapping[str, int], period: int) -> dict[str, Any]:
    """Return the rules of one direction: the policy that allows more wins, one of 0 is left out; without any, scaling is disabled."""
    policies = [{"type": kind, "value": value, "periodSeconds": period} for kind, value in limits.items()]
    allowed = [policy for policy in policies if policy["value"]]
    return {
        "stabilizationWindowSeconds": stabilisation,
        "selectPolicy": "Max" if allowed else "Disabled",
        "policies": allowed or [{**policies[0], "value": 1}],
    }


def _policies(spec: ExecutionSpec, *, namespace: str, anchor_uid: str) -> list[manifests.Manifest]:
    """Return the policies beyond those of every execution: the pods reach each other and the workspace or job that the cluster belongs to,
    whose own objects do not know the cluster; the proxy reaches the head's page, and the controller polls the head."""
    kind, client = framework(cluster_of(spec).framework), cluster_of(spec).attached_to
    members, clients = _pods_of(spec.id), [_pods_of(client)] if client else []
    peers, called = [members, *clients], [members, *(clients if kind.calls_back else ())]
    page = {
        "from": [system_peer("proxy"), system_peer("controller")],
        "ports": [{"protocol": "TCP", "port": kind.ui_port}],
    }
    head, whole = {"matchLabels": _selector(spec, HEAD)}, manifests.metadata(spec, namespace, anchor_uid)
    of_head = manifests.metadata(spec, namespace, anchor_uid, name=head_name(spec.id))
    policies = [
        build_policy(whole, members["podSelector"], ingress=[{"from": peers}], egress=[{"to": called}]),
        build_policy(of_head, head, ingress=[page]),
    ]
    if client:
        of_client = manifests.metadata(spec, namespace, anchor_uid, name=f"cluster-{spec.id}-client")
        ingress = [{"from": [members]}] if kind.calls_back else None
        policies.append(build_policy(of_client, clients[0]["podSelector"], ingress=ingress, egress=[{"to": [members]}]))
    return policies


def _pods_of(execution_id: str) -> RawObject:
    return {"podSelector": {"matchLabels": {KEYS.execution: execution_id}}}
