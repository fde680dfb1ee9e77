"""The Node object of one kubelet: registered, kept fresh, its Lease renewed.

As on Kubernetes a node joins NotReady and becomes Ready when it can run pods; a deleted Node object is created again only when the
kubelet restarts. Taints and conditions that other clients write are kept.
"""

import asyncio
import logging
import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grid.core.errors import Conflict, GridError, NotFound
from grid.core.quantity import parse_quantity
from grid.sandbox.client import LEASES, NODES, Api, Clock, Object, format_micro_time, format_time, parse_time, uid_of
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet.services import Events

logger = logging.getLogger(__name__)

_LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40
_RENEW_SECONDS = 10.0
_REPORT_SECONDS = 300.0
_RETRY_SECONDS = 2.0
_KUBELET_VERSION = "v1.36.2"
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_NOT_READY = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:starting"


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """The properties of a machine that its kubelet reports."""

    name: str
    address: str
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    boot_id: str = ""
    rebooted: bool = False
    ready_after: float = 2.0
    host_name: str = ""  # the address of type Hostname, where it is not the name


class NodeAgent:
    """The part of a kubelet that registers the node and keeps its status and its Lease fresh."""

    def __init__(
        self, spec: MachineSpec, api: Api, *, images: ImageStore, events: Events, clock: Clock, runtime_version: str
    ) -> None:
        self._spec = spec
        self._api = api
        self._images = images
        self._events = events
        self._clock = clock
        self._runtime_version = runtime_version
        self._ready = False
        self._port = 10250
        self._uid = ""
        self._missing = False

    @property
    def reference(self) -> Object:
        """The reference for events about the node; its uid is the name, as in a real kubelet's events."""
        return {"kind": "Node", "apiVersion": "v1", "name": self._spec.name, "uid": self._spec.name}

    async def run(self, port: int) -> None:
        """Register the node and keep it alive until cancelled."""
        self._port = port
        while True:
            try:
                await self._live()
            except Exception:
                logger.exception("node name=%s failed and starts again", self._spec.name)
                await self._clock.sleep(_RETRY_SECONDS)

    async def _live(self) -> None:
        await self._register()
        self._tell("Starting", "Starting kubelet.")
        if self._spec.rebooted:
            message = f"Node {self._spec.name} has been rebooted, boot id: {self._spec.boot_id}"
            self._events.about(self.reference, "Rebooted", message, type="Warning")
        for reason in ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"):
            self._tell(reason, f"Node {self._spec.name} status is now: {reason}")
        async with asyncio.TaskGroup() as group:
            group.create_task(self._become_ready())
            group.create_task(self._beat())

    async def _become_ready(self) -> None:
        await self._clock.sleep(self._spec.ready_after)
        self._ready = True
        await self._try(self._report)
        self._tell("NodeReady", f"Node {self._spec.name} status is now: NodeReady")

    async def _beat(self) -> None:
        while True:
            await self._try(self._renew)
            await self._try(self._report)
            await self._clock.sleep(_RENEW_SECONDS)

    async def _register(self) -> None:
        """Register the node, retrying until the API server accepts; an existing object is kept and updated."""
        while True:
            try:
                await self._register_once()
            except GridError as error:
                logger.warning("node name=%s is not registered yet: %s", self._spec.name, error)
                await self._clock.sleep(max(_RETRY_SECONDS, error.retry_after))
            else:
                return

    async def _register_once(self) -> None:
        labels = dict(self._spec.labels)
        node: Object = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self._spec.name, "labels": labels},
            "spec": {"taints": [dict(taint) for taint in self._spec.taints]} if self._spec.taints else {},
            "status": self._status({}),
        }
        try:
            made = await self._api.create(NODES.path(), node)
        except Conflict:
            made = await self._api.patch(NODES.path(name=self._spec.name), {"metadata": {"labels": labels}})
        self._uid = uid_of(made)
        await self._report()

    async def _try(self, write: Callable[[], Awaitable[None]]) -> None:
        try:
            await write()
        except GridError as error:
            missing = isinstance(error, NotFound)
            if missing and not self._missing:
                logger.warning("node name=%s was deleted; it comes back when its kubelet starts again", self._spec.name)
            elif not missing:
                logger.warning("node name=%s heartbeat failed: %s", self._spec.name, error)
            self._missing = missing
        except Exception:
            logger.exception("node name=%s heartbeat failed", self._spec.name)

    async def _report(self) -> None:
        """Write the status when it would change, and regularly so that its times are recent."""
        current = await self._api.get(NODES.path(name=self._spec.name))
        before = current.get("status") or {}
        status = self._status(before)
        if not _differs(status, before, self._clock.now().timestamp()):
            return
        await self._api.patch(NODES.path(name=self._spec.name, subresource="status"), {"status": status})

    def _status(self, before: Object) -> Object:
        spec = self._spec
        now = format_time(self._clock.now())
        ready = ("Ready", "KubeletReady", "kubelet is posting ready status")
        if not self._ready:
            ready = ("Ready", "KubeletNotReady", _NOT_READY)
        known = {item["type"]: item for item in before.get("conditions") or ()}
        conditions = []
        for kind, reason, message in (*_PRESSURES, ready):
            status = "True" if kind == "Ready" and self._ready else "False"
            same = known.get(kind, {}).get("status") == status
            since = known[kind].get("lastTransitionTime", now) if same else now
            times = {"lastHeartbeatTime": now, "lastTransitionTime": since}
            conditions.append({"type": kind, "status": status, **times, "reason": reason, "message": message})
        ours = {"Ready"} | {kind for kind, _, _ in _PRESSURES}
        conditions += [item for kind, item in known.items() if kind not in ours]
        return {
            "capacity": dict(spec.capacity),
            "allocatable": dict(spec.allocatable),
            "conditions": conditions,
            "addresses": [
                {"type": "InternalIP", "address": spec.address},
                {"type": "Hostname", "address": spec.host_name or spec.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            "nodeInfo": self._info(),
            "images": [
                {"names": [pulled.image.name], "sizeBytes": pulled.size_bytes} for pulled in self._images.all_present()
            ],
        }

    def _info(self) -> dict[str, str]:
        return {
            "machineID": self._spec.name,
            "systemUUID": self._spec.name,
            "bootID": self._spec.boot_id,
            "kernelVersion": platform.release(),
            "osImage": "This machine (Compute Grid embedded)",
            "containerRuntimeVersion": self._runtime_version,
            "kubeletVersion": _KUBELET_VERSION,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64" if platform.machine() in ("x86_64", "AMD64") else "arm64",
        }

    async def _renew(self) -> None:
        path = LEASES.path(_LEASE_NAMESPACE, self._spec.name)
        now = format_micro_time(self._clock.now())
        try:
            await self._api.patch(path, {"spec": {"renewTime": now, "holderIdentity": self._spec.name}})
        except NotFound:
            await self._api.create(LEASES.path(_LEASE_NAMESPACE), self._lease(now))

    def _lease(self, now: str) -> Object:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._spec.name, "uid": self._uid}
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._spec.name, "namespace": _LEASE_NAMESPACE, "ownerReferences": [owner]},
            "spec": {"holderIdentity": self._spec.name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": now},
        }

    def _tell(self, reason: str, message: str) -> None:
        self._events.about(self.reference, reason, message)


def _differs(status: Object, before: Object, now: float) -> bool:
    """Return True when anything but the heartbeat changed, or the last heartbeat is old."""
    old = {item["type"]: item for item in before.get("conditions") or ()}
    for condition in status["conditions"]:
        known = old.get(condition["type"], {})
        if any(known.get(key) != condition.get(key) for key in ("status", "reason", "message")):
            return True
        beat = parse_time(known.get("lastHeartbeatTime"))
        if beat is None or now - beat.timestamp() >= _REPORT_SECONDS:
            return True
    return any(not _same(before.get(key), value) for key, value in status.items() if key != "conditions")


def _same(before: Any, now: Any) -> bool:
    """Compare two values as the server stores them: without empty values, and with quantities in canonical form."""
    if not now:
        return not before
    if isinstance(now, dict) and isinstance(before, dict):
        return before.keys() == now.keys() and all(_same(before[key], value) for key, value in now.items())
    try:
        return bool(before == now or parse_quantity(before) == parse_quantity(now))
    except ValueError:
        return False
