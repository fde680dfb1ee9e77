"""The embedded cluster's own small API client: used by its controllers and kubelets, against any Kubernetes API server.

    async with Client.from_kubeconfig("var/kubeconfig") as client:
        pods = Mirror(client, PODS.path(), field_selector="spec.nodeName=node-1")
        task = asyncio.create_task(pods.run())
        await pods.synced()

Paths come from the `Resource` constants: `PODS.path(namespace, name, "status")`.
"""

from grid.sandbox.client.clock import Clock, SystemClock
from grid.sandbox.client.errors import ApiError
from grid.sandbox.client.events import EventRecorder
from grid.sandbox.client.http import Api, Client, ObjectList, PatchKind, WatchEvent
from grid.sandbox.client.kubeconfig import BadKubeconfig, ServerAccess, read_kubeconfig
from grid.sandbox.client.mirror import Listener, Mirror, Mirrors
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
    split_key,
    uid_of,
)
from grid.sandbox.client.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    QUOTAS,
    REPLICA_SETS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    VOLUME_CLAIMS,
    Resource,
)

__all__ = [
    "CONFIG_MAPS",
    "DEPLOYMENTS",
    "DISRUPTION_BUDGETS",
    "EVENTS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PODS",
    "QUOTAS",
    "REPLICA_SETS",
    "SECRETS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "VOLUME_CLAIMS",
    "Api",
    "ApiError",
    "BadKubeconfig",
    "Client",
    "Clock",
    "EventRecorder",
    "Listener",
    "Mirror",
    "Mirrors",
    "Object",
    "ObjectList",
    "PatchKind",
    "Resource",
    "ServerAccess",
    "SystemClock",
    "WatchEvent",
    "annotations_of",
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
    "read_kubeconfig",
    "reference_to",
    "split_key",
    "uid_of",
]
