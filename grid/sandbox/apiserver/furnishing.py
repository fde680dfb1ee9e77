"""The objects that a cluster has from the start."""

from grid.sandbox.apiserver.kinds import stored_kinds
from grid.sandbox.apiserver.registry import Registry

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def furnish(registry: Registry) -> None:
    """Create the namespaces and the Service that are missing."""
    kinds = stored_kinds()
    for name in _NAMESPACES:
        if registry.store.get("namespaces", name) is None:
            body = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            registry.create(kinds["namespaces"], "", body)
    if registry.store.get("services", "kube-system/localhost") is None:
        # An APIService names this Service, with a port, to reach a program of this machine.
        spec = {"type": "ExternalName", "externalName": "localhost"}
        service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "localhost"}, "spec": spec}
        registry.create(kinds["services"], "kube-system", service)
