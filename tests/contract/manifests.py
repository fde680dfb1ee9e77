"""The smallest valid manifests of the kinds under test.

Pods ask for a scheduler and a node label that no cluster has, so nothing ever runs them: where a test needs a pod that is
scheduled or Ready, it writes the binding or the status itself.
"""

from typing import Any

from tests.contract.client import Object

NOBODY = "contract-tests.example/nobody"
IMAGE = "registry.example/app:1"


def metadata(name: str, **fields: Any) -> Object:
    """A name ending in a dash is a prefix for the server to complete."""
    return {
        "generateName" if name.endswith("-") else "name": name,
        **{key: value for key, value in fields.items() if value},
    }


def config_map(name: str, data: dict[str, str] | None = None, **fields: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(name, **fields),
        "data": data or {"key": "value"},
    }


def secret(name: str, **fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(name), **fields}


def pod_spec(**container: Any) -> Object:
    return {
        "schedulerName": "contract-tests-nobody",
        "nodeSelector": {NOBODY: "true"},
        "automountServiceAccountToken": False,
        "containers": [{"name": "app", "image": IMAGE, **container}],
    }


def pod(name: str, *, container: Object | None = None, spec: Object | None = None, **fields: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, **fields),
        "spec": pod_spec(**(container or {})) | (spec or {}),
    }


def replica_set(name: str, replicas: int, **fields: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata(name, labels={"app": name}, **fields),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()},
        },
    }


def deployment(name: str, replicas: int = 0, **spec: Any) -> Object:
    made = replica_set(name, replicas)
    return {**made, "kind": "Deployment", "spec": {**made["spec"], **spec}}


def lease(name: str, holder: str, **spec: Any) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata(name),
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec},
    }


def disruption_budget(name: str, *, app: str, min_available: int) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name),
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}},
    }


def quota(name: str, hard: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata(name), "spec": {"hard": hard}}


def event(name: str, about: Object, **fields: Any) -> Object:
    subject = about["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata(name),
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": subject["name"],
            "namespace": subject["namespace"],
            "uid": subject["uid"],
        },
        "type": "Normal",
        "reason": "Tested",
        "message": "A test says so",
        **fields,
    }


def owned_by(owner: Object, *, block: bool = False) -> list[Object]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **({"blockOwnerDeletion": True} if block else {}),
        }
    ]


def binding(pod_name: str, node: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod_name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def eviction(pod_name: str) -> Object:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod_name}}


def claim(name: str, size: str = "1Gi", **more: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata(name), "spec": spec}


RUNNING_AND_READY: Object = {
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ],
    }
}
