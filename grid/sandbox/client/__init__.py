"""The API client of the embedded cluster's controllers and kubelets, on `grid.kube`, for any Kubernetes API server.

    async with Client.from_kubeconfig("var/kubeconfig") as client:
        pods = Mirror(client, PODS, field_selector="spec.nodeName=node-1")
        task = asyncio.create_task(pods.run())
        await pods.synced()

Paths come from the `Resource` constants: `PODS.path(namespace, name, "status")`.
"""

from grid.kube.errors import answer_of
from grid.kube.resources import (
    API_SERVICES,
    AUTOSCALERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ENDPOINT_SLICES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    POD_METRICS,
    PODS,
    REPLICA_SETS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Resource,
)
from grid.sandbox.client.clock import Clock, SystemClock
from grid.sandbox.client.events import EventRecorder
from grid.sandbox.client.http import Api, Client, PatchKind
from grid.sandbox.client.mirror import Mirror, Mirrors
from grid.sandbox.client.objects import (
    Object,
    annotations_of,
    condition_of,
    controller_of,
    format_micro_time,
    format_time,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    parse_time,
    reference_to,
    uid_of,
)

__all__ = [
    "API_SERVICES",
    "AUTOSCALERS",
    "CONFIG_MAPS",
    "DEPLOYMENTS",
    "DISRUPTION_BUDGETS",
    "ENDPOINT_SLICES",
    "EVENTS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PODS",
    "POD_METRICS",
    "REPLICA_SETS",
    "SECRETS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "STORAGE_CLASSES",
    "VOLUMES",
    "VOLUME_CLAIMS",
    "Api",
    "Client",
    "Clock",
    "EventRecorder",
    "Mirror",
    "Mirrors",
    "Object",
    "PatchKind",
    "Resource",
    "SystemClock",
    "annotations_of",
    "answer_of",
    "condition_of",
    "controller_of",
    "format_micro_time",
    "format_time",
    "is_terminating",
    "key_of",
    "labels_of",
    "name_of",
    "namespace_of",
    "parse_time",
    "reference_to",
    "uid_of",
]
