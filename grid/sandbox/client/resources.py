"""Paths of the resources that the embedded cluster's controllers and kubelets read and write."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object; `path` is its URL path in the API, across all namespaces when none is given."""

    prefix: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return self.prefix.split("/", 2)[2]

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        parts = [self.prefix]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


PODS = Resource("/api/v1", "pods", "Pod")
NODES = Resource("/api/v1", "nodes", "Node", namespaced=False)
EVENTS = Resource("/api/v1", "events", "Event")
CONFIG_MAPS = Resource("/api/v1", "configmaps", "ConfigMap")
SECRETS = Resource("/api/v1", "secrets", "Secret")
NAMESPACES = Resource("/api/v1", "namespaces", "Namespace", namespaced=False)
VOLUME_CLAIMS = Resource("/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim")
QUOTAS = Resource("/api/v1", "resourcequotas", "ResourceQuota")
SERVICES = Resource("/api/v1", "services", "Service")
SERVICE_ACCOUNTS = Resource("/api/v1", "serviceaccounts", "ServiceAccount")
LEASES = Resource("/apis/coordination.k8s.io/v1", "leases", "Lease")
DEPLOYMENTS = Resource("/apis/apps/v1", "deployments", "Deployment")
REPLICA_SETS = Resource("/apis/apps/v1", "replicasets", "ReplicaSet")
DISRUPTION_BUDGETS = Resource("/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
