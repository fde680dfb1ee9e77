"""Brings an execution's objects into the cluster and out of it again. Every step may be repeated at any time.

What exists under a derived name and carries the execution's label is ours from an earlier try and is left as it is; the same
name without it belongs to somebody else, and nothing of that is touched.
"""

import logging
from collections.abc import Sequence

import msgspec

from grid.errors import Conflict, GridError, NotFound
from grid.kube.api import KubeApi
from grid.kube.objects import Metadata, Pod, RawObject
from grid.kube.resources import CONFIG_MAPS, NAMESPACES, PODS
from grid.labels import KEYS, MANAGED_BY, MANAGER
from grid.launch import manifests
from grid.launch.manifests import Manifest, Storage
from grid.launch.spec import ExecutionSpec

logger = logging.getLogger(__name__)


class NameTaken(GridError):
    """An object of somebody else has the name that ours must have."""


class _PodList(msgspec.Struct):
    items: tuple[Pod, ...] = ()


class _Versioned(msgspec.Struct):
    metadata: Metadata


class _PageMetadata(msgspec.Struct):
    continue_token: str = msgspec.field(default="", name="continue")


class _VersionPage(msgspec.Struct):
    metadata: _PageMetadata
    items: tuple[_Versioned, ...] = ()


async def ensure_namespace(api: KubeApi, namespace: str) -> None:
    """Create it unless it exists."""
    try:
        await api.get(NAMESPACES, namespace)
    except NotFound:
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {MANAGED_BY: MANAGER}},
        }
        try:
            await api.create(NAMESPACES, body)
            logger.info("namespace created name=%s", namespace)
        except Conflict:
            logger.debug("namespace was created by somebody else name=%s", namespace)


async def create_all(api: KubeApi, spec: ExecutionSpec, *, namespace: str, token: str, storage: Storage) -> None:
    """Create what is missing, in order. Raises NameTaken, or what the API server says."""
    anchor = await _get_or_create(api, manifests.anchor(spec, namespace=namespace), spec.id)
    uid = str(anchor["metadata"]["uid"])
    wanted = manifests.build(spec, namespace=namespace, token=token, anchor_uid=uid, storage=storage)
    for manifest in wanted[1:]:
        # The project's claim has many users, and an admin may have made it by hand.
        await _get_or_create(api, manifest, spec.id if manifest.owned else "")


async def find_pods(api: KubeApi, execution_id: str, *, namespace: str) -> Sequence[Pod]:
    """The execution's pods as the API server knows them now: never from a cache."""
    selector = f"{KEYS.execution}={execution_id}"
    body = await api.list_page(PODS, namespace=namespace, label_selector=selector)
    return msgspec.json.decode(body, type=_PodList).items


async def pod_versions(api: KubeApi, *, namespace: str, label_selector: str) -> dict[str, str]:
    """Key and version of every pod that the selector finds, as the API server knows them now."""
    found: dict[str, str] = {}
    token = ""
    while True:
        body = await api.list_page(PODS, namespace=namespace, label_selector=label_selector, continue_token=token)
        page = msgspec.json.decode(body, type=_VersionPage)
        found |= {item.metadata.key: item.metadata.resource_version for item in page.items}
        token = page.metadata.continue_token
        if not token:
            return found


async def delete_all(api: KubeApi, object_name: str, execution_id: str, *, namespace: str) -> Sequence[Pod]:
    """Ask for the end of everything; the pods that are still there, ending. Nothing is left when it returns none."""
    await _delete_anchor(api, object_name, execution_id, namespace)
    pods = await find_pods(api, execution_id, namespace=namespace)
    for pod in pods:
        # The garbage collector would do it too; asking ourselves works also for a pod that has lost its owner.
        if pod.metadata.deletion_timestamp is None:
            await _delete_pod(api, pod)
    return await find_pods(api, execution_id, namespace=namespace) if pods else ()


async def _get_or_create(api: KubeApi, manifest: Manifest, execution_id: str) -> RawObject:
    namespace = str(manifest.body["metadata"]["namespace"])
    try:
        return await api.create(manifest.resource, manifest.body, namespace=namespace)
    except Conflict:
        found = await api.get(manifest.resource, manifest.name, namespace=namespace)
    if execution_id and not _is_ours(found, execution_id):
        kind = manifest.resource.kind
        raise NameTaken(f"There is a {kind} {manifest.name} in {namespace} already that belongs to something else.")
    return found


async def _delete_anchor(api: KubeApi, name: str, execution_id: str, namespace: str) -> None:
    try:
        anchor = await api.get(CONFIG_MAPS, name, namespace=namespace)
        if _is_ours(anchor, execution_id) and "deletionTimestamp" not in anchor["metadata"]:
            uid = str(anchor["metadata"]["uid"])
            await api.delete(CONFIG_MAPS, name, namespace=namespace, propagation="Background", uid=uid)
    except (NotFound, Conflict) as error:
        logger.debug("anchor is gone or another now name=%s reason=%s", name, error)


async def _delete_pod(api: KubeApi, pod: Pod) -> None:
    meta = pod.metadata
    try:
        await api.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid)
    except (NotFound, Conflict) as error:
        logger.debug("pod is gone or another now pod=%s reason=%s", meta.key, error)


def _is_ours(found: RawObject, execution_id: str) -> bool:
    return (found["metadata"].get("labels") or {}).get(KEYS.execution) == execution_id
