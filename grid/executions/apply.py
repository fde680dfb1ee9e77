"""Creates an execution's objects in the cluster and deletes them; every step may be repeated. An object with a derived name and the
execution's label comes from an earlier try and is left; one with the same name but without the label is somebody else's, and not
touched."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from grid.core.decoding import prepared
from grid.core.errors import ClusterUnavailable, Conflict, GridError, NotFound
from grid.core.labels import KEYS, MANAGED_BY, MANAGER, POD_SECURITY
from grid.core.translation import gettext as _
from grid.executions import manifests
from grid.executions.manifests import Manifest, without_sidecars
from grid.executions.spec import ExecutionSpec
from grid.kube.api import KubeApi
from grid.kube.objects import Metadata, Pod, RawObject
from grid.kube.resources import CONFIG_MAPS, NAMESPACES, PODS, VOLUME_CLAIMS, Resource

logger = logging.getLogger(__name__)

T = TypeVar("T")
LOG_BYTES = 64 * 1024
LOG_LINES = 5000
LOG_SECONDS = 10.0


class NameTaken(GridError):
    """An object of somebody else has the name that ours must have."""


class _Described(msgspec.Struct):
    metadata: Metadata


class _PageMetadata(msgspec.Struct, frozen=True):
    continue_token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, Generic[T]):
    metadata: _PageMetadata = _PageMetadata()
    items: tuple[T, ...] | None = ()  # null when a list of metadata alone is empty


async def ensure_namespace(api: KubeApi, namespace: str) -> None:
    """Create the namespace unless it exists."""
    try:
        await api.get(NAMESPACES, namespace)
    except NotFound:
        metadata = {"name": namespace, "labels": {MANAGED_BY: MANAGER, POD_SECURITY: "restricted"}}
        try:
            await api.create(NAMESPACES, Manifest.of(NAMESPACES, metadata).body)
            logger.info("namespace created name=%s", namespace)
        except Conflict:
            logger.debug("namespace was created by somebody else name=%s", namespace)


async def create_all(
    api: KubeApi,
    spec: ExecutionSpec,
    build: Callable[[str], Sequence[Manifest]],
    *,
    claims: set[str],
    has_sidecars: bool,
) -> None:
    """Create the missing objects of a run, of which `build` makes the manifests for the anchor's uid; without native sidecars what stands
    beside the program is ordinary containers. What need not know each other is asked for at once, since each answer may take seconds: the
    anchor and those of its claims that are not among the known ones; what the pod refers to; the pod and what refers to it. Raise
    NameTaken, or the API server's error."""
    shared = [made for made in build("") if not made.owned]
    wanted = {made.name for made in shared if made.resource == VOLUME_CLAIMS}
    anchor, *_claims = await create_at_once(api, [made for made in shared if made.name not in wanted & claims], spec.id)
    claims |= wanted
    owned = [made for made in build(str(anchor["metadata"]["uid"])) if made.owned]
    first = next((at for at, made in enumerate(owned) if made.resource == PODS), len(owned))
    await create_at_once(api, owned[:first], spec.id)
    rest = [without_sidecars(made) if made.resource == PODS and not has_sidecars else made for made in owned[first:]]
    await create_at_once(api, rest, spec.id)


async def create_at_once(api: KubeApi, manifests: Sequence[Manifest], execution_id: str) -> Sequence[RawObject]:
    """Create the missing ones, all at once, and return the objects; of a claim that exists, what was asked for. When all have answered,
    raise the first's error, in their order: NameTaken, or the API server's."""
    asked = (_get_or_create_any(api, manifest, execution_id) for manifest in manifests)
    objects: list[RawObject] = []
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer
        objects.append(answer)
    return objects


async def create_anchor(api: KubeApi, spec: ExecutionSpec, *, namespace: str) -> str:
    """Create the anchor, which owns all objects of an execution, unless it exists; return its uid."""
    anchor = await get_or_create(api, manifests.anchor(spec, namespace=namespace), spec.id)
    return str(anchor["metadata"]["uid"])


async def find_pods(api: KubeApi, execution_id: str, *, namespace: str) -> Sequence[Pod]:
    """Return the execution's pods as the API server knows them now: never from a cache."""
    return await list_all(api, PODS, Pod, namespace=namespace, label_selector=f"{KEYS.execution}={execution_id}")


async def pod_metadata(api: KubeApi, *, namespace: str, label_selector: str) -> dict[str, Metadata]:
    """Return the metadata of every selected pod by its key, as the API server knows them now; only metadata is transferred."""
    pods = await list_all(api, PODS, _Described, namespace=namespace, label_selector=label_selector, metadata_only=True)
    return {pod.metadata.key: pod.metadata for pod in pods}


async def list_all(
    api: KubeApi, resource: Resource, kind: type[T], *, namespace: str, label_selector: str, metadata_only: bool = False
) -> Sequence[T]:
    """Return all pages of a list, as objects of that type."""
    items: list[T] = []
    asked: dict[str, Any] = {"label_selector": label_selector, "metadata_only": metadata_only}
    token = ""
    while True:
        body = await api.list_page(resource, namespace=namespace, continue_token=token, **asked)
        page = msgspec.json.decode(body, type=prepared(_Page[kind]))  # type: ignore[valid-type]
        items += page.items or ()
        token = page.metadata.continue_token
        if not token:
            return items


async def delete_all(api: KubeApi, object_name: str, execution_id: str, *, namespace: str) -> Sequence[Pod]:
    """Delete everything and return the pods that still exist, which are ending; nothing is left when there are none."""
    await delete_anchor(api, object_name, execution_id, namespace=namespace)
    return await end_pods(api, execution_id, namespace=namespace)


async def end_pods(
    api: KubeApi, execution_id: str, *, namespace: str, grace_seconds: int | None = None
) -> Sequence[Pod]:
    """Delete the execution's pods, with their own grace period or a shorter one; return those that still exist, which are ending."""
    pods = await find_pods(api, execution_id, namespace=namespace)
    for pod in pods:
        # The garbage collector would do it too; deleting here works also for a pod that has lost its owner.
        left = pod.metadata.deletion_grace_period_seconds or 0
        if pod.metadata.deletion_timestamp is None or (grace_seconds is not None and left > grace_seconds):
            await delete_pod(api, pod, grace_seconds=grace_seconds)
    return await find_pods(api, execution_id, namespace=namespace) if pods else ()


async def get_or_create(api: KubeApi, manifest: Manifest, execution_id: str) -> RawObject:
    """Return the object as it is now in the cluster. Raise NameTaken, or the API server's error."""
    namespace = str(manifest.body["metadata"]["namespace"])
    try:
        return await api.create(manifest.resource, manifest.body, namespace=namespace)
    except Conflict:
        existing = await api.get(manifest.resource, manifest.name, namespace=namespace)
    # A claim has many users, and an admin may have created it by hand.
    if manifest.resource != VOLUME_CLAIMS and not is_ours(existing, execution_id):
        names = {"kind": manifest.resource.kind, "name": manifest.name, "namespace": namespace}
        raise NameTaken(_("There is a {kind} {name} in {namespace} already that belongs to something else.", **names))
    return existing


async def _get_or_create_any(api: KubeApi, manifest: Manifest, execution_id: str) -> RawObject:
    if manifest.resource != VOLUME_CLAIMS:
        return await get_or_create(api, manifest, execution_id)
    try:
        return await api.create(manifest.resource, manifest.body, namespace=str(manifest.body["metadata"]["namespace"]))
    except Conflict:  # as a rule: it has many users
        return manifest.body


async def delete_anchor(api: KubeApi, name: str, execution_id: str, *, namespace: str) -> None:
    """Delete the anchor; the garbage collector then deletes what it owns."""
    try:
        anchor = await api.get(CONFIG_MAPS, name, namespace=namespace)
        if is_ours(anchor, execution_id) and "deletionTimestamp" not in anchor["metadata"]:
            uid = str(anchor["metadata"]["uid"])
            await api.delete(CONFIG_MAPS, name, namespace=namespace, propagation="Background", uid=uid)
    except (NotFound, Conflict) as error:
        logger.debug("anchor is gone or another now name=%s reason=%s", name, error)


async def delete_pod(api: KubeApi, pod: Pod, *, grace_seconds: int | None = None) -> None:
    meta = pod.metadata
    try:
        await api.delete(PODS, meta.name, namespace=meta.namespace, grace_seconds=grace_seconds, uid=meta.uid)
    except (NotFound, Conflict) as error:
        logger.debug("pod is gone or another now pod=%s reason=%s", meta.key, error)


def is_ours(existing: RawObject, execution_id: str) -> bool:
    return (existing["metadata"].get("labels") or {}).get(KEYS.execution) == execution_id


async def end_of_log(api: KubeApi, pod: Pod, container: str) -> str:
    """Return the end of the log, if there is any. Raise ClusterUnavailable while the pod may still be read, to be tried again."""
    kept = bytearray()
    try:
        async with asyncio.timeout(LOG_SECONDS):
            meta = pod.metadata
            async for chunk in api.logs(meta.name, namespace=meta.namespace, container=container, tail_lines=LOG_LINES):
                kept += chunk
                del kept[:-LOG_BYTES]
    except ClusterUnavailable:
        if pod.metadata.deletion_timestamp is None:
            raise
    except (GridError, TimeoutError) as error:
        # The container never ran, or its node is gone: no more of the log will come.
        logger.info("log not kept pod=%s reason=%s", pod.metadata.key, str(error) or "no answer in time")
    return kept.decode(errors="replace").replace("\x00", "")
