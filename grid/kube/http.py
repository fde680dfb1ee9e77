"""`KubeApi` over HTTP: raw bytes for lists and watches, no models. How a request is sent is in `grid.kube.transport`."""

from collections.abc import AsyncIterator
from typing import Literal

from grid.kube.api import Propagation
from grid.kube.credentials import CredentialSource
from grid.kube.objects import RawObject
from grid.kube.resources import PODS, Resource
from grid.kube.transport import FIELD_MANAGER, Transport, decode_object, query_of

_MERGE_PATCH = "application/merge-patch+json"


async def connect(*, kubeconfig: str = "", context: str = "") -> "HttpKubeApi":
    """Return an API that has been spoken to once. Raise ClusterUnavailable or NotAllowed when that does not work."""
    api = HttpKubeApi(CredentialSource(kubeconfig, context))
    try:
        await api.version()
    except BaseException:
        await api.close()
        raise
    return api


class HttpKubeApi(Transport):
    """Ask a Kubernetes API server over HTTP."""

    async def version(self) -> RawObject:
        """Return what the server says it is; the cheapest proof that it answers."""
        async with self._request("GET", "/version") as response:
            return decode_object(await response.read())

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> RawObject:
        return await self._object("GET", resource.path(namespace=namespace, name=name))

    async def create(
        self, resource: Resource, body: RawObject, *, namespace: str = "", dry_run: bool = False
    ) -> RawObject:
        namespace = namespace or body.get("metadata", {}).get("namespace", "")
        query = query_of(fieldManager=FIELD_MANAGER, dryRun="All" if dry_run else "")
        return await self._object("POST", resource.path(namespace=namespace), query=query, body=body)

    async def replace(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        path = resource.path(namespace=namespace, name=name)
        return await self._object("PUT", path, query=query_of(fieldManager=FIELD_MANAGER), body=body)

    async def patch(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        path, query = resource.path(namespace=namespace, name=name), query_of(fieldManager=FIELD_MANAGER)
        return await self._object("PATCH", path, query=query, body=body, content_type=_MERGE_PATCH)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
        uid: str = "",
    ) -> None:
        path = resource.path(namespace=namespace, name=name)
        await self._delete(path, grace_seconds=grace_seconds, propagation=propagation, uid=uid)

    async def evict(self, pod: str, *, namespace: str, uid: str = "") -> None:
        metadata = {"name": pod, "namespace": namespace}
        body: RawObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        if uid:
            body["deleteOptions"] = {"preconditions": {"uid": uid}}
        path = PODS.path(namespace=namespace, name=pod, subresource="eviction")
        await self._object("POST", path, query=query_of(fieldManager=FIELD_MANAGER), body=body)

    async def logs(
        self,
        pod: str,
        *,
        namespace: str,
        container: str = "",
        tail_lines: int | None = None,
        previous: bool = False,
        timestamps: bool = False,
        since: str = "",
    ) -> AsyncIterator[bytes]:
        query = query_of(
            container=container,
            tailLines="" if tail_lines is None else str(tail_lines),
            sinceTime=since,
            previous="true" if previous else "",
            timestamps="true" if timestamps else "",
        )
        path = PODS.path(namespace=namespace, name=pod, subresource="log")
        async with self._request("GET", path, query=query) as response:
            async for chunk in response.content.iter_any():
                yield chunk

    async def ask_sandbox(
        self, method: Literal["GET", "PATCH", "POST"], path: str, body: RawObject | None = None
    ) -> RawObject:
        return await self._object(method, f"/sandbox/{path}", body=body)

    async def server_text(self, path: str, *, verbose: bool = False) -> str:
        async with self._request("GET", path, query=query_of(verbose="true") if verbose else None) as response:
            return (await response.read()).decode(errors="replace")
