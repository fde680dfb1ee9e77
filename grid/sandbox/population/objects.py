"""The Kubernetes objects of the population: nodes, executions' objects, and newly created pods.

They are as the API server stores them after defaulting, with the managed fields of a real cluster; a test compares them with
the product's own. Times are Kubernetes' text.
"""

import json
from typing import Any

from grid.core.labels import (
    APP_COMPONENT,
    APP_INSTANCE,
    APP_NAME,
    HEAD,
    KEYS,
    MANAGED_BY,
    MANAGER,
    NODE_POOL,
    PREFIX,
    SAFE_TO_EVICT,
    SIMULATED,
)
from grid.core.quantity import millicores, whole
from grid.sandbox.client import Object
from grid.sandbox.kubelet.capacity import allocatable_of
from grid.sandbox.pools import NodePool
from grid.sandbox.population.plan import SimulatedExecution
from grid.sandbox.population.rooms import PodRequest

POD_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def node(name: str, uid: str, pool: NodePool, number: int, now: str) -> Object:
    address = f"10.{128 + number // 65536}.{number // 256 % 256}.{number % 256}"
    conditions = [
        {
            "type": kind,
            "status": "False",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for kind, reason, message in _PRESSURES
    ]
    ready = {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
    conditions.append({"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now, **ready})
    taints = pool.node_taints()
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": uid,
            "resourceVersion": "",
            "creationTimestamp": now,
            "labels": {**pool.node_labels(name), SIMULATED: "true"},
        },
        "spec": {"providerID": f"sandbox://{name}", **({"taints": taints} if taints else {})},
        "status": {
            "capacity": dict(pool.capacity),
            "allocatable": dict(allocatable_of(pool.capacity)),
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "nodeInfo": {
                "machineID": uid.replace("-", ""),
                "systemUUID": uid,
                "bootID": uid,
                "kernelVersion": "6.1.0",
                "osImage": "Simulated (Compute Grid embedded)",
                "containerRuntimeVersion": "simulated://1",
                "kubeletVersion": "v1.36.2",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def need_of(pod: Object) -> PodRequest:
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    return PodRequest(
        pod["spec"]["nodeSelector"][NODE_POOL],
        millicores(requests["cpu"]),
        whole(requests["memory"]) // 2**20,
        int(requests.get("nvidia.com/gpu", 0)),
    )


def beat(node: Object, now: str) -> None:
    """Renew the heartbeat, as a kubelet does every five minutes when nothing else changes."""
    for condition in node["status"]["conditions"]:
        condition["lastHeartbeatTime"] = now


def anchor(execution: SimulatedExecution, namespace: str, now: str) -> Object:
    data = {"execution": execution.id, "tier": execution.tier.id, "environment": execution.environment.id}
    metadata = _metadata(execution, execution.name, execution.uid, namespace, now)
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}


def replica_set(execution: SimulatedExecution, component: str, uid: str, namespace: str, now: str) -> Object:
    """Return the ReplicaSet that owns the pods of a cluster. It has no Deployment, because nothing reads one."""
    count = 1 if component == HEAD else execution.workers
    metadata = _metadata(execution, set_name(execution, component), uid, namespace, now, component=component)
    selector = {KEYS.execution: execution.id, APP_COMPONENT: component}
    return {
        "kind": "ReplicaSet",
        "apiVersion": "apps/v1",
        "metadata": {
            **metadata,
            "generation": 1,
            "ownerReferences": [_owner("v1", "ConfigMap", execution.name, execution.uid)],
        },
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": selector}, "spec": {}},
        },
        "status": {"replicas": count, "readyReplicas": count, "observedGeneration": 1},
    }


def set_name(execution: SimulatedExecution, component: str) -> str:
    return f"{execution.name}-{component}-{execution.uid[:8]}"


def pod(
    execution: SimulatedExecution,
    name: str,
    uid: str,
    namespace: str,
    now: str,
    *,
    component: str = "",
    owner: str = "",
) -> Object:
    """Return a newly created pod. `component` and `owner`, the uid of its ReplicaSet, are for pods of clusters."""
    metadata = _metadata(execution, name, uid, namespace, now, component=component)
    metadata["annotations"] = {f"{PREFIX}/title": execution.title, SAFE_TO_EVICT: "false"}
    if component:
        metadata["generateName"] = f"{set_name(execution, component)}-"
        metadata["ownerReferences"] = [_owner("apps/v1", "ReplicaSet", set_name(execution, component), owner)]
    else:
        metadata["ownerReferences"] = [_owner("v1", "ConfigMap", execution.name, execution.uid)]
    spec = _pod_spec(execution, component)
    made: Object = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
    metadata["managedFields"] = _managed_fields(execution.kind, component, made, now)
    return made


def _metadata(
    execution: SimulatedExecution, name: str, uid: str, namespace: str, now: str, *, component: str = ""
) -> Object:
    return {
        "name": name,
        "namespace": namespace,
        "uid": uid,
        "resourceVersion": "",
        "creationTimestamp": now,
        "labels": {
            APP_NAME: execution.environment.id,
            APP_INSTANCE: execution.name,
            APP_COMPONENT: component or execution.kind,
            MANAGED_BY: MANAGER,
            KEYS.workload_type: execution.kind,
            KEYS.tier: execution.tier.id,
            KEYS.project: execution.project,
            KEYS.user: execution.owner,
            KEYS.execution: execution.id,
            SIMULATED: "true",
        },
    }


def _owner(version: str, kind: str, name: str, uid: str) -> Object:
    whose = {"apiVersion": version, "kind": kind, "name": name, "uid": uid}
    return {**whose, "controller": True, "blockOwnerDeletion": True}


def _pod_spec(execution: SimulatedExecution, component: str) -> Object:
    tier = execution.tier
    tolerations: list[Object] = (
        [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}] if tier.gpus else []
    )
    tolerations += [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    claims = {"project": f"project-{execution.project}", "home": f"home-{execution.project}-{execution.owner}"}
    volumes: list[Object] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()
    ]
    volumes.append({"name": "runtime", "emptyDir": {"sizeLimit": "20Gi"}})
    if execution.kind == "workspace":
        volumes.append(_settings_volume(execution))
    return {
        "containers": [_container(execution, component)],
        "volumes": volumes,
        "restartPolicy": "Always" if component else "Never" if execution.kind == "job" else "OnFailure",
        "terminationGracePeriodSeconds": 30,
        "nodeSelector": {NODE_POOL: tier.pool},
        "tolerations": tolerations,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _settings_volume(execution: SimulatedExecution) -> Object:
    """Return the volume with what JupyterLab is told, as `grid.executions.jupyter` makes it."""
    folders = {
        "default_setting_overrides.json": "labconfig/",
        "jupyter_server_config.json": "",
        "sitecustomize.py": "python/",
    }
    items = [{"key": file, "path": f"{folder}{file}"} for file, folder in folders.items()]
    config_map = {"name": execution.name, "items": items, "optional": True, "defaultMode": 420}
    return {"name": "jupyter", "configMap": config_map}


def _container(execution: SimulatedExecution, component: str) -> Object:
    requests = execution.tier.requests
    is_workspace = execution.kind == "workspace"
    settings = {
        "JUPYTER_CONFIG_PATH": "/etc/grid/jupyter",
        "PYTHONPATH": "/etc/grid/jupyter/python",
        "GRID_PACKAGES_PATH": f"/home/grid/.local/grid/{execution.environment.id}",
    }
    jupyter_env: list[Object] = (
        [{"name": name, "value": value} for name, value in settings.items()] if is_workspace else []
    )
    mounted: list[Object] = (
        [{"name": "jupyter", "mountPath": "/etc/grid/jupyter", "readOnly": True}] if is_workspace else []
    )
    return {
        "name": "run",
        "image": execution.environment.image,
        "command": _command(execution, component),
        "workingDir": "/home/grid",
        "ports": [{"name": "http", "containerPort": 8888, "protocol": "TCP"}],
        "env": [
            {"name": "GRID_EXECUTION_ID", "value": execution.id},
            {"name": "GRID_BASE_URL", "value": "/"},
            {"name": "GRID_PROJECT_PATH", "value": "/mnt/project"},
            {"name": "HOME", "value": "/home/grid"},
            {"name": "JUPYTER_RUNTIME_DIR", "value": "/run/grid"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP", "apiVersion": "v1"}}},
            {"name": "GRID_LISTEN_HOST", "value": "$(POD_IP)"},
            {"name": "JUPYTER_TOKEN", "valueFrom": {"secretKeyRef": {"name": execution.name, "key": "token"}}},
            *jupyter_env,
        ],
        "resources": {"requests": requests, "limits": {**requests, "ephemeral-storage": "20Gi"}},
        "volumeMounts": [
            {"name": "project", "mountPath": "/mnt/project"},
            {"name": "home", "mountPath": "/home/grid"},
            {"name": "runtime", "mountPath": "/run/grid"},
            *mounted,
        ],
        "readinessProbe": {
            "tcpSocket": {"port": 8888},
            "periodSeconds": 2,
            "timeoutSeconds": 2,
            "failureThreshold": 3,
            "successThreshold": 1,
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "imagePullPolicy": "IfNotPresent",
    }


def _command(execution: SimulatedExecution, component: str) -> list[str]:
    if component:
        return [execution.environment.framework, component, "--host=$(POD_IP)", "--port=8888", "--no-dashboard"]
    if execution.kind == "job":
        return ["python", "main.py"]
    return ["jupyter", "lab", "--no-browser", "--ip=$(POD_IP)", "--port=8888", "--ServerApp.root_dir=/mnt/project"]


_fields: dict[tuple[str, str], tuple[Object, Object]] = {}


def _managed_fields(kind: str, component: str, made: Object, now: str) -> list[Object]:
    """Return the managed fields as a real API server keeps them: a good third of a pod's bytes."""
    if (kind, component) not in _fields:
        metadata = {
            key: value for key, value in made["metadata"].items() if key in ("labels", "annotations", "ownerReferences")
        }
        status = {
            "conditions": [{"type": kind} for kind in POD_CONDITIONS],
            "containerStatuses": {},
            "hostIP": "",
            "phase": "",
        }
        status |= {"podIP": "", "podIPs": {}, "startTime": ""}
        _fields[kind, component] = _tree({"metadata": metadata, "spec": made["spec"]}), _tree({"status": status})
    spec, status = _fields[kind, component]
    manager = "kube-controller-manager" if component else MANAGER
    common = {"operation": "Update", "apiVersion": "v1", "time": now, "fieldsType": "FieldsV1"}
    return [
        {"manager": manager, **common, "fieldsV1": spec},
        {"manager": "kubelet", **common, "fieldsV1": status, "subresource": "status"},
    ]


def _tree(value: Any) -> Object:
    if isinstance(value, dict):
        return {f"f:{key}": _tree(inner) for key, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        key = next((name for name in ("name", "uid", "type", "key", "ip") if name in value[0]), "")
        if key and key != "key":
            return {
                f"k:{json.dumps({key: item[key]}, separators=(',', ':'))}": {".": {}, **_tree(item)} for item in value
            }
    return {}


def event(about: Object, uid: str, kind: str, reason: str, message: str, source: str, now: str) -> Object:
    metadata = about["metadata"]
    namespace = metadata.get("namespace", "default")
    reference = {"kind": about["kind"], "name": metadata["name"], "uid": metadata["uid"], "apiVersion": "v1"}
    name = f"{metadata['name']}.{uid.replace('-', '')[:16]}"
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": "", "creationTimestamp": now},
        "involvedObject": reference | ({"namespace": namespace} if "namespace" in metadata else {}),
        "reason": reason,
        "message": message,
        "source": {"component": source},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": kind,
        "eventTime": None,
        "reportingComponent": source,
        "reportingInstance": "",
    }
