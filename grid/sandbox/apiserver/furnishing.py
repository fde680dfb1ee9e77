"""The objects that a cluster has from the start."""

import contextlib
from pathlib import Path

from grid.sandbox.apiserver.kinds import Object, stored_kinds
from grid.sandbox.apiserver.priorities import CLASSES, SYSTEM_CLASSES
from grid.sandbox.apiserver.registry import Registry
from grid.sandbox.apiserver.status import Failure
from grid.sandbox.storage import CLASSES_RESOURCE, DEFAULT_CLASS, PROVISIONER

METRICS_API = "v1beta1.metrics.k8s.io"
_API_SERVICES = "apiservices.apiregistration.k8s.io"
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def furnish_metrics_api(registry: Registry) -> None:
    """Create the APIService of metrics.k8s.io if it is missing. It names no Service, because this server answers by itself."""
    if registry.store.get(_API_SERVICES, METRICS_API) is not None:
        return
    version, _, group = METRICS_API.partition(".")
    spec = {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100}
    metadata = {"name": METRICS_API, "labels": {"kube-aggregator.kubernetes.io/automanaged": "true"}}
    body = {"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "metadata": metadata, "spec": spec}
    registry.create(stored_kinds()[_API_SERVICES], "", body)


def furnish_repositories(registry: Registry, directory: Path, *, namespace: str) -> None:
    """Create the PersistentVolume for the claim `repositories` if it is missing, with that directory: what an admin of a real cluster
    makes for projects whose files are in Git. It follows a data directory that was moved, as no client could make it."""
    name, plural = "repositories", "persistentvolumes"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    record = registry.store.get(plural, name)
    if record is not None:
        followed = record.fresh()
        followed["spec"]["hostPath"]["path"] = str(directory)
        if followed != record.obj:
            registry.store.put(plural, name, followed)
        return
    spec = {
        "capacity": {"storage": "100Gi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "hostPath": {"path": str(directory), "type": "DirectoryOrCreate"},
        "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace, "name": name},
    }
    body = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}
    registry.create(stored_kinds()[plural], "", body)


def _standard_class() -> Object:
    """Return the class of claims that name none. Every node reaches every directory, so nobody has to wait for a pod's node."""
    return {
        "kind": "StorageClass",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": PROVISIONER,
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
    }


def furnish(registry: Registry) -> None:
    """Create the namespaces, the PriorityClasses, a StorageClass, the Services and the APIService that are missing."""
    kinds = stored_kinds()
    for name in _NAMESPACES:
        if registry.store.get("namespaces", name) is None:
            body = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            registry.create(kinds["namespaces"], "", body)
    for name, (value, description) in SYSTEM_CLASSES.items():
        if registry.store.get(CLASSES, name) is None:
            body = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name}}
            registry.create(kinds[CLASSES], "", {**body, "value": value, "description": description})
    furnish_metrics_api(registry)
    if not registry.store.count(CLASSES_RESOURCE):
        registry.create(kinds[CLASSES_RESOURCE], "", _standard_class())
    if registry.store.get("services", "kube-system/localhost") is None:
        # An APIService names this Service, with a port, to reach a program of this machine.
        spec = {"type": "ExternalName", "externalName": "localhost"}
        service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "localhost"}, "spec": spec}
        registry.create(kinds["services"], "kube-system", service)
    if registry.store.get("services", "default/kubernetes") is None:
        # Programs look at it, but nothing listens at its address: pods reach this server by their kubeconfig.
        port = {"name": "https", "port": 443, "targetPort": 6443}
        service = {
            "kind": "Service",
            "apiVersion": "v1",
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"clusterIP": "10.96.0.1", "ports": [port]},
        }
        with contextlib.suppress(Failure):  # of an older cluster, in which somebody asked for that address
            registry.create(kinds["services"], "default", service)
