"""The Kubernetes objects of an execution, built from its frozen spec alone: the same spec gives the same objects.

An anchor (a ConfigMap) owns the Secret and the Pod, so deleting the anchor deletes everything. The project's volume claim
is nobody's: it outlives every execution. Names are derived from the execution's id, so whoever tries again finds what exists.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grid.kube.objects import RawObject
from grid.kube.resources import CONFIG_MAPS, PODS, SECRETS, VOLUME_CLAIMS, Resource
from grid.labels import (
    APP_COMPONENT,
    APP_INSTANCE,
    APP_NAME,
    KEYS,
    MANAGED_BY,
    MANAGER,
    NODE_POOL,
    PREFIX,
    SAFE_TO_EVICT,
    label_value,
)
from grid.launch.spec import ExecutionSpec, TierSpec

CONTAINER = "run"
PROJECT_PATH = "/mnt/project"
TOKEN_KEY = "token"
TITLE = f"{PREFIX}/title"
# Long enough to write open files away, short enough that somebody who pressed Stop does not wonder.
GRACE_SECONDS = 30
# Any unprivileged number works in any image, whatever user the image names; the volume's group makes files writable.
USER_ID = 1000


@dataclass(frozen=True, slots=True)
class Storage:
    """How projects' volumes are claimed. Several executions of one project run on several nodes, so the mode is ReadWriteMany;
    a cluster whose storage cannot do that takes ReadWriteOnce and keeps a project on one node at a time."""

    access_mode: str = "ReadWriteMany"
    storage_class: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object to be created; `owned` says that it goes with the anchor."""

    resource: Resource
    body: RawObject
    owned: bool = True

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


def build(
    spec: ExecutionSpec, *, namespace: str, token: str, anchor_uid: str = "", storage: Storage = Storage()
) -> list[Manifest]:
    """All objects in the order of creation, the anchor first; the others name it by `anchor_uid`, known once it exists."""
    return [
        anchor(spec, namespace=namespace),
        volume_claim(spec, namespace=namespace, storage=storage),
        Manifest(SECRETS, _secret(spec, namespace, token, anchor_uid)),
        Manifest(PODS, _pod(spec, namespace, anchor_uid)),
    ]


def anchor(spec: ExecutionSpec, *, namespace: str) -> Manifest:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(spec, namespace),
        "data": {"execution": spec.id, "tier": spec.tier.id, "environment": spec.environment.id},
    }
    return Manifest(CONFIG_MAPS, body, owned=False)


def volume_claim(spec: ExecutionSpec, *, namespace: str, storage: Storage = Storage()) -> Manifest:
    claim: dict[str, Any] = {
        "accessModes": [storage.access_mode],
        "resources": {"requests": {"storage": spec.project.volume_size}},
    }
    if storage.storage_class:
        claim["storageClassName"] = storage.storage_class
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": spec.project.volume_name,
            "namespace": namespace,
            "labels": {MANAGED_BY: MANAGER, KEYS.project: label_value(spec.project.id)},
        },
        "spec": claim,
    }
    return Manifest(VOLUME_CLAIMS, body, owned=False)


def labels_of(spec: ExecutionSpec) -> dict[str, str]:
    """What selectors look for; texts of people become valid values."""
    return {
        APP_NAME: label_value(spec.environment.id),
        APP_INSTANCE: spec.object_name,
        APP_COMPONENT: label_value(spec.kind),
        MANAGED_BY: MANAGER,
        KEYS.workload_type: label_value(spec.kind),
        KEYS.tier: label_value(spec.tier.id),
        KEYS.project: label_value(spec.project.id),
        KEYS.user: label_value(spec.owner),
        KEYS.execution: spec.id,
    }


def _metadata(spec: ExecutionSpec, namespace: str, anchor_uid: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": spec.object_name, "namespace": namespace, "labels": labels_of(spec)}
    if anchor_uid:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": spec.object_name,
                "uid": anchor_uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    return metadata


def _secret(spec: ExecutionSpec, namespace: str, token: str, anchor_uid: str) -> RawObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(spec, namespace, anchor_uid),
        "type": "Opaque",
        "data": {TOKEN_KEY: base64.b64encode(token.encode()).decode()},
    }


def _pod(spec: ExecutionSpec, namespace: str, anchor_uid: str) -> RawObject:
    metadata = _metadata(spec, namespace, anchor_uid)
    # Ours win: a tier's extra labels decorate, they never hide an execution from its owner.
    metadata["labels"] = {**spec.tier.extra_labels, **metadata["labels"]}
    metadata["annotations"] = {
        **spec.tier.extra_annotations,
        TITLE: spec.title,
        # Work in memory is lost when a pod is moved, so the autoscaler must not empty its node.
        SAFE_TO_EVICT: "false",
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _pod_spec(spec)}


def _pod_spec(spec: ExecutionSpec) -> dict[str, Any]:
    return {
        "containers": [_container(spec)],
        "volumes": _volumes(spec),
        # A workspace whose server crashes comes back; one that its user shuts down from within has ended, as has a job.
        "restartPolicy": "Never" if spec.kind == "job" else "OnFailure",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "nodeSelector": {NODE_POOL: spec.tier.node_pool},
        "tolerations": _tolerations(spec.tier),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "fsGroup": USER_ID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _container(spec: ExecutionSpec) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": spec.environment.image,
        "workingDir": PROJECT_PATH,
        "env": _environment(spec),
        "resources": _resources(spec.tier),
        "volumeMounts": _mounts(spec.tier),
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        # The end of the log explains a failure to somebody who never looks into the container.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if spec.environment.command:
        container["command"] = [_filled_in(part, spec) for part in spec.environment.command]
    if spec.port:
        container["ports"] = [{"name": "http", "containerPort": spec.port, "protocol": "TCP"}]
        container["readinessProbe"] = {
            "tcpSocket": {"port": spec.port},
            "periodSeconds": 2,
            "timeoutSeconds": 2,
            "failureThreshold": 3,
        }
    return container


def _filled_in(part: str, spec: ExecutionSpec) -> str:
    """Only our two placeholders: any other brace belongs to the program."""
    return part.replace("{port}", str(spec.port)).replace("{base_url}", spec.base_url)


def _environment(spec: ExecutionSpec) -> list[dict[str, Any]]:
    ours: Mapping[str, Any] = {
        "GRID_EXECUTION_ID": {"value": spec.id},
        "GRID_BASE_URL": {"value": spec.base_url},
        "HOME": {"value": PROJECT_PATH},
        "POD_IP": {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        "JUPYTER_TOKEN": {"valueFrom": {"secretKeyRef": {"name": spec.object_name, "key": TOKEN_KEY}}},
    }
    theirs = {name: {"value": value} for name, value in spec.environment.variables.items() if name not in ours}
    # Ours first: a variable of the environment may refer to them as $(POD_IP), and Kubernetes looks only backwards.
    return [{"name": name, **source} for name, source in {**ours, **theirs}.items()]


def _resources(tier: TierSpec) -> dict[str, dict[str, str]]:
    requests = {"cpu": tier.cores, "memory": tier.memory}
    limits = {"cpu": tier.cores_limit, "memory": tier.memory_limit}
    if tier.gpus:
        cards = {tier.gpu_resource: str(tier.gpus)}
        requests, limits = requests | cards, limits | cards
    return {"requests": requests, "limits": limits}


def _tolerations(tier: TierSpec) -> list[dict[str, Any]]:
    tolerations = [dict(toleration) for toleration in tier.tolerations]
    if tier.gpus:
        # The taint by which clouds keep everything else away from machines with GPUs.
        gpu = {"key": tier.gpu_resource, "operator": "Exists", "effect": "NoSchedule"}
        if gpu not in tolerations:
            tolerations.append(gpu)
    return tolerations


def _volumes(spec: ExecutionSpec) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "project", "persistentVolumeClaim": {"claimName": spec.project.volume_name}}
    ]
    if spec.tier.shared_memory:
        volumes.append(
            {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": spec.tier.shared_memory}}
        )
    return volumes


def _mounts(tier: TierSpec) -> list[dict[str, str]]:
    mounts = [{"name": "project", "mountPath": PROJECT_PATH}]
    if tier.shared_memory:
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})
    return mounts
