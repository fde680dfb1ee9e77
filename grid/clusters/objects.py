"""Finds, changes and deletes a cluster's objects in Kubernetes. Every step may be repeated at any time. A Deployment that still exists
would create new pods, so the makers of pods are deleted first, and nothing counts as gone as long as one of them was found."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from grid.clusters import manifests
from grid.core.errors import Conflict, NotFound
from grid.core.labels import KEYS
from grid.core.translation import gettext as _
from grid.executions import apply
from grid.executions.context import NotYet
from grid.executions.manifests import Manifest
from grid.kube.api import KubeApi
from grid.kube.objects import Metadata, RawObject
from grid.kube.resources import AUTOSCALERS, DEPLOYMENTS, REPLICA_SETS

logger = logging.getLogger(__name__)

# Each creates the next; the last creates pods.
_MAKERS = (AUTOSCALERS, DEPLOYMENTS, REPLICA_SETS)
# No worker is left to hand work over to, so a drain would only take time.
ENDING_GRACE_SECONDS = 15


class Listed(msgspec.Struct):
    metadata: Metadata


def address_of(service: RawObject) -> str:
    """Return the Service's address. Raise NotYet until Kubernetes has assigned one."""
    address = str(service.get("spec", {}).get("clusterIP") or "")
    if not address:
        raise NotYet(_("Waiting for the address of its head, which the cluster assigns."))
    return address


async def find(api: KubeApi, manifest: Manifest) -> RawObject | None:
    try:
        return await api.get(manifest.resource, manifest.name, namespace=str(manifest.body["metadata"]["namespace"]))
    except NotFound:
        return None


async def patch(api: KubeApi, manifest: Manifest, spec: Mapping[str, Any]) -> None:
    namespace = str(manifest.body["metadata"]["namespace"])
    await api.patch(manifest.resource, manifest.name, {"spec": dict(spec)}, namespace=namespace)


async def delete_all(api: KubeApi, object_name: str, execution_id: str, *, namespace: str) -> bool:
    """Delete everything. Return True while pods, or objects that create them, were found."""
    await apply.delete_anchor(api, object_name, execution_id, namespace=namespace)
    makers, selector = 0, f"{KEYS.execution}={execution_id}"
    for resource in _MAKERS:
        # The garbage collector would do it too; deleting here works also for objects that have lost their owner.
        for listed in await apply.list_all(api, resource, Listed, namespace=namespace, label_selector=selector):
            makers += 1
            meta = listed.metadata
            if meta.deletion_timestamp is not None:
                continue
            try:
                await api.delete(resource, meta.name, namespace=meta.namespace, propagation="Background", uid=meta.uid)
            except (NotFound, Conflict) as error:
                logger.debug("is gone or another now kind=%s name=%s reason=%s", resource.kind, meta.name, error)
    pods = await apply.end_pods(api, execution_id, namespace=namespace, grace_seconds=ENDING_GRACE_SECONDS)
    return bool(makers or pods)


async def worker_replicas(api: KubeApi, cluster_id: str, namespace: str) -> int:
    try:
        deployment = await api.get(DEPLOYMENTS, manifests.worker_name(cluster_id), namespace=namespace)
    except NotFound:
        return 0
    return int(deployment["spec"].get("replicas", 1))
