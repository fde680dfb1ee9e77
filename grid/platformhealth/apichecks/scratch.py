"""The place in which the checks of the API work: a namespace of its own, or the executions', where all belongs to one ConfigMap.

What is made is found again by its name alone, which the stored run has, so that it can be removed after a crash without a right to list.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from grid.core.errors import Conflict, GridError, NotAllowed, NotFound
from grid.core.labels import API_CHECK, MANAGED_BY, MANAGER, POD_SECURITY
from grid.core.translation import gettext as _
from grid.kube.api import KubeApi
from grid.kube.objects import RawObject
from grid.kube.resources import CONFIG_MAPS, NAMESPACES, PODS, Resource

POLL_SECONDS = 0.2
ADMITTED_SECONDS = 30.0
_IMAGE = "compute-grid/never-started:1"  # no pod of a check is ever bound to a node, so nothing is pulled
_ASLEEP = {
    "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}},
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
}


class CheckFailed(Exception):
    """The API answered, and not as Compute Grid needs; the message says what it did."""


@dataclass(slots=True)
class Scratch:
    """Names and manifests of one run; `token` tells it from all others. `anchor` owns all that is made, once there is one."""

    api: KubeApi
    namespace: str
    token: str
    installation: str  # the namespace of executions, by which an installation knows its own
    anchor: RawObject | None = None

    @property
    def is_shared(self) -> bool:
        return self.namespace == self.installation

    @property
    def labels(self) -> dict[str, str]:
        """Return our label, and none by which the controller takes an object for an execution's."""
        return {API_CHECK: self.token}

    @property
    def selector(self) -> str:
        return f"{API_CHECK}={self.token}"

    def name(self, part: str) -> str:
        return f"api-check-{self.token}-{part}"

    def manifest(self, resource: Resource, part: str, **fields: Any) -> RawObject:
        """Return an object with our labels that belongs to the anchor."""
        metadata: RawObject = {"name": self.name(part), "namespace": self.namespace, "labels": self.labels}
        if self.anchor is not None:
            owner = {"name": self.anchor["metadata"]["name"], "uid": self.anchor["metadata"]["uid"]}
            metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", **owner}]
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}

    def pod_spec(self) -> RawObject:
        """Return the spec of a pod that fits no node, so that it never starts, and that the strictest pod security admits."""
        quantities = {"cpu": "1m", "memory": "4Mi"}
        container = {
            "name": "never",
            "image": _IMAGE,
            "command": ["true"],
            "resources": {"requests": quantities, "limits": quantities},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
        return {"containers": [container], "nodeSelector": {API_CHECK: "never"}, **_ASLEEP}

    async def create(self, resource: Resource, part: str, *, dry_run: bool = False, **fields: Any) -> RawObject:
        """Create an object. Raise CheckFailed where nothing would remove it if we stopped."""
        if self.is_shared and self.anchor is None and part != "anchor" and not dry_run:
            raise CheckFailed(_("Not tried: the ConfigMap with which all is removed could not be created."))
        body = self.manifest(resource, part, **fields)
        return await self.api.create(resource, body, namespace=self.namespace, dry_run=dry_run)

    async def get(self, resource: Resource, part: str) -> RawObject:
        return await self.api.get(resource, self.name(part), namespace=self.namespace)

    async def delete(self, resource: Resource, part: str) -> None:
        await self.api.delete(
            resource, self.name(part), namespace=self.namespace, grace_seconds=0, propagation="Background"
        )

    async def listed(
        self, resource: Resource, *, limit: int = 500, token: str = "", metadata_only: bool = False
    ) -> RawObject:
        """Return one page of what this run has made of the kind."""
        page = await self.api.list_page(
            resource,
            namespace=self.namespace,
            label_selector=self.selector,
            limit=limit,
            continue_token=token,
            metadata_only=metadata_only,
        )
        return msgspec.json.decode(page, type=dict[str, Any])

    async def is_gone(self, resource: Resource, part: str) -> bool:
        try:
            await self.get(resource, part)
        except NotFound:
            return True
        return False


async def must_refuse(asking: Awaitable[object], refusal: type[GridError], otherwise: str) -> None:
    """Raise CheckFailed with the sentence unless the API refuses."""
    try:
        await asking
    except refusal:
        return
    raise CheckFailed(otherwise)


async def until(is_so: Callable[[], Awaitable[bool]], otherwise: str, *, seconds: float) -> None:
    """Ask until it is so. Raise CheckFailed with the sentence, which names the seconds, when it is not in time."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                if await is_so():
                    return
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise CheckFailed(otherwise.format(seconds=seconds)) from None


def namespace_of(installation: str, token: str) -> str:
    """Return the name of the run's own namespace; a name may have 63 characters."""
    return f"{installation[:40].rstrip('-')}-api-check-{token}"


async def make_namespace(scratch: Scratch) -> None:
    """Make the run's own namespace, and wait until it admits pods: a new one has no service account yet. Raise NotAllowed."""
    labels = {API_CHECK: scratch.installation, MANAGED_BY: MANAGER, POD_SECURITY: "restricted"}
    metadata = {"name": scratch.namespace, "labels": labels}
    await scratch.api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    async def admits() -> bool:
        try:
            await scratch.create(PODS, "probe", dry_run=True, spec=scratch.pod_spec())
        except GridError:
            return False
        return True

    with contextlib.suppress(CheckFailed):  # then the checks themselves say why pods are refused
        await until(admits, "", seconds=ADMITTED_SECONDS)


async def remove(scratch: Scratch) -> None:
    """Remove what a run has made; doing so twice changes nothing. Raise Conflict for a namespace of its name that is somebody else's."""
    api, namespace = scratch.api, scratch.namespace
    with contextlib.suppress(NotFound):
        if scratch.is_shared:
            await api.delete(CONFIG_MAPS, scratch.name("anchor"), namespace=namespace, propagation="Background")
            return
        metadata = (await api.get(NAMESPACES, namespace))["metadata"]
        if (metadata.get("labels") or {}).get(API_CHECK) != scratch.installation:
            raise Conflict(_("The namespace {namespace} is not one of our checks’.", namespace=namespace))
        if not metadata.get("deletionTimestamp"):
            await api.delete(NAMESPACES, namespace, propagation="Background", uid=metadata["uid"])


async def check_namespaces(api: KubeApi, installation: str) -> list[str]:
    """Return namespaces of this installation's checks; [] without the right to list them."""
    try:
        page = await api.list_page(NAMESPACES, label_selector=f"{API_CHECK}={installation}")
    except NotAllowed:
        return []
    spaces = msgspec.json.decode(page, type=dict[str, Any])["items"]
    names = (str(space["metadata"]["name"]) for space in spaces)
    return [name for name in names if name.startswith(namespace_of(installation, ""))]
