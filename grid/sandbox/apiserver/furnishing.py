"""What is in a cluster from the start."""

from grid.sandbox.apiserver.kinds import stored_kinds
from grid.sandbox.apiserver.registry import Registry

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def furnish(registry: Registry) -> None:
    """Create what is missing of it."""
    kinds = stored_kinds()
    for name in _NAMESPACES:
        if registry.store.get("namespaces", name) is None:
            body = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            registry.create(kinds["namespaces"], "", body)
    if registry.store.get("services", "kube-system/localhost") is None:
        # By which an APIService names a program of this machine, with that program's port.
        spec = {"type": "ExternalName", "externalName": "localhost"}
        service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "localhost"}, "spec": spec}
        registry.create(kinds["services"], "kube-system", service)
