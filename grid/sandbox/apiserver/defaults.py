"""The defaults that the API server fills in for fields that a client omits.

Each function changes the object that it is given. They run on creation, on update and after a patch, so each must
leave a complete object as it is.
"""

import base64
from collections.abc import Callable, Mapping

from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.podtemplates import pod_spec_defaults
from grid.sandbox.storage import CLASSES_RESOURCE

_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def apply_defaults(kind: ServedKind, obj: Object) -> None:
    default = _DEFAULTS.get(kind.resource)
    if default is not None:
        default(obj)


def _pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    pod_spec_defaults(spec)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    spec.setdefault("enableServiceLinks", True)
    tolerations = spec.get("tolerations") or []
    for key in _NOT_READY:
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec["tolerations"] = tolerations
    status = pod.setdefault("status", {})
    if "phase" not in status and spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    status.setdefault("phase", "Pending")


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key", key) in (key, "") and toleration.get("effect", "NoExecute") in ("NoExecute", "")


def _deployment(deployment: Object) -> None:
    spec = deployment.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    pod_spec_defaults(spec.setdefault("template", {}).setdefault("spec", {}))
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate") or {}
        strategy["rollingUpdate"] = rolling
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    deployment.setdefault("status", {})


def _replica_set(replica_set: Object) -> None:
    spec = replica_set.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if spec.get("template"):
        pod_spec_defaults(spec["template"].setdefault("spec", {}))
    replica_set.setdefault("status", {"replicas": 0})


def _job(job: Object) -> None:
    spec = job.setdefault("spec", {})
    pod_spec_defaults(spec.setdefault("template", {}).setdefault("spec", {}))
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("suspend", False)
    job.setdefault("status", {})


def _service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port", 0))
    service.setdefault("status", {"loadBalancer": {}})


def _endpoint_slice(endpoints: Object) -> None:
    for port in endpoints.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _autoscaler(autoscaler: Object) -> None:
    spec = autoscaler.setdefault("spec", {})
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior:
        _scaling_rules(behavior, "scaleUp", 0, [("Pods", 4), ("Percent", 100)])
        _scaling_rules(behavior, "scaleDown", None, [("Percent", 100)])
    autoscaler.setdefault("status", {"desiredReplicas": 0, "currentMetrics": None})


def _scaling_rules(behavior: Object, direction: str, window: int | None, policies: list[tuple[str, int]]) -> None:
    rules = behavior.get(direction) or {}
    behavior[direction] = rules
    if window is not None:
        rules.setdefault("stabilizationWindowSeconds", window)
    rules.setdefault("selectPolicy", "Max")
    if not rules.get("policies"):
        rules["policies"] = [{"type": kind, "value": value, "periodSeconds": 15} for kind, value in policies]


def _namespace(namespace: Object) -> None:
    namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = namespace["metadata"]["name"]
    namespace.setdefault("status", {}).setdefault("phase", "Active")


def _node(node: Object) -> None:
    status = node.setdefault("status", {})
    node.setdefault("spec", {})
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = dict(status["capacity"])


def _claim(claim: Object) -> None:
    spec = claim.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def _volume(volume: Object) -> None:
    spec = volume.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if isinstance(spec.get("hostPath"), dict):
        spec["hostPath"].setdefault("type", "")
    volume.setdefault("status", {}).setdefault("phase", "Pending")


def _storage_class(storage_class: Object) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def _secret(secret: Object) -> None:
    secret.setdefault("type", "Opaque")
    for key, text in (secret.pop("stringData", None) or {}).items():
        secret.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _disruption_budget(budget: Object) -> None:
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    budget.setdefault("status", dict.fromkeys(counts, 0))


def _network_policy(policy: Object) -> None:
    spec = policy.setdefault("spec", {})
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _event(event: Object) -> None:
    event.setdefault("source", {})
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(key, None)
    event.setdefault("reportingComponent", "")
    event.setdefault("reportingInstance", "")


def _api_service(api: Object) -> None:
    service = api.setdefault("spec", {}).get("service")
    if service is not None:
        service.setdefault("port", 443)
    api.setdefault("status", {})


def _limit_range(limit_range: Object) -> None:
    for limit in limit_range.setdefault("spec", {}).get("limits") or ():
        if limit.get("type") != "Container":
            continue
        most = {**(limit.get("max") or {}), **(limit.get("default") or {})}
        if most:
            limit["default"] = most
        asked = {**(limit.get("min") or {}), **most, **(limit.get("defaultRequest") or {})}
        if asked:
            limit["defaultRequest"] = asked


def _priority_class(priority_class: Object) -> None:
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _quota(quota: Object) -> None:
    quota.setdefault("spec", {})
    quota.setdefault("status", {})


_DEFAULTS: Mapping[str, Callable[[Object], None]] = {
    "pods": _pod,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "services": _service,
    "jobs.batch": _job,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "namespaces": _namespace,
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    CLASSES_RESOURCE: _storage_class,
    "secrets": _secret,
    "poddisruptionbudgets.policy": _disruption_budget,
    "networkpolicies.networking.k8s.io": _network_policy,
    "events": _event,
    "limitranges": _limit_range,
    "resourcequotas": _quota,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "apiservices.apiregistration.k8s.io": _api_service,
}
