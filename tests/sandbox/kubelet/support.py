"""What the kubelet's tests share: an API server in memory, a clock that can be put forward, and one node to run pods on."""

import asyncio
import os
import re
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from grid.kube import resources
from grid.kube.api import Propagation
from grid.kube.resources import Resource
from grid.sandbox.client import Object, PatchKind, name_of, namespace_of
from grid.sandbox.images import ImageCatalogue
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet.addresses import AddressBook
from grid.sandbox.kubelet.handlers import SharedWeb
from grid.sandbox.kubelet.kubelet import Host, Kubelet
from grid.sandbox.kubelet.node import MachineSpec
from grid.sandbox.kubelet.process_runtime import ProcessRuntime
from grid.sandbox.kubelet.runtime import Attempt
from grid.sandbox.kubelet.sampler import Sampler
from tests.support.cluster import FakeCluster
from tests.support.waiting import eventually

NODE = "node-1"


def running(folder: Path, *command: str) -> list[psutil.Process]:
    """Those of the test with this folder; another run of the tests has the same programs."""
    return [
        item
        for item in psutil.process_iter(["cmdline", "cwd"])
        if item.info["cmdline"] == list(command) and Path(item.info["cwd"] or "/").is_relative_to(folder)
    ]


def only_wheels_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installer of images finds the wheels in that folder, and no index."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, text in {"NO_INDEX": "1", "FIND_LINKS": str(folder), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", text)


class JumpClock:
    """Real time that a test can put forward: whoever sleeps until then wakes up."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._jumped = asyncio.Event()

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._offset)

    def monotonic(self) -> float:
        return time.monotonic() + self._offset

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        """Counts from the call, not from when the loop comes to it: a jump in between must not be slept again."""
        return self._until(self.monotonic() + seconds)

    async def _until(self, end: float) -> None:
        while (left := end - self.monotonic()) > 0:
            jumped = self._jumped
            try:
                async with asyncio.timeout(left):
                    await jumped.wait()
            except TimeoutError:
                return

    def jump(self, seconds: float) -> bool:
        """False, so that a condition that is waited for can put the clock forward on each look."""
        self._offset += seconds
        jumped, self._jumped = self._jumped, asyncio.Event()
        jumped.set()
        return False


_RESOURCES = {resource.path(): resource for resource in vars(resources).values() if isinstance(resource, Resource)}
_PATH = re.compile(r"((?:/api|/apis/[^/]+)/v1)(?:/namespaces/([^/]+))?(/[^/]+)(?:/([^/]+))?(?:/([^/]+))?")


CLAIM_SPEC: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


class FakeApi:
    """A `FakeCluster` that is asked by paths. `down` makes every request fail."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.cluster.put(resources.NAMESPACES, {"metadata": {"name": "kube-node-lease"}})
        self.list_page, self.watch = self.cluster.list_page, self.cluster.watch
        self.writes: list[tuple[str, str]] = []

    async def get(self, path: str) -> Object:
        resource, namespace, name, _ = _place(path)
        return await self.cluster.get(resource, name, namespace=namespace)

    async def list(self, path: str, *, label_selector: str = "", field_selector: str = "") -> list[Object]:
        resource, namespace, _, _ = _place(path)
        page = await self.cluster.list_page(
            resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector, limit=0
        )
        items: list[Object] = msgspec.json.decode(page)["items"]
        return items

    async def create(self, path: str, body: Object) -> Object:
        self.writes.append(("create", path))
        resource, namespace, _, subresource = _place(path)
        if subresource == "token":
            return {"status": {"token": "a-token"}}
        return await self.cluster.create(resource, body, namespace=namespace)

    async def update(self, path: str, body: Object) -> Object:
        self.writes.append(("update", path))
        resource, namespace, name, _ = _place(path)
        return await self.cluster.replace(resource, name, body, namespace=namespace)

    async def patch(self, path: str, body: object, *, kind: PatchKind = "merge") -> Object:
        self.writes.append(("patch", path))
        resource, namespace, name, subresource = _place(path)
        assert isinstance(body, dict)
        return self.cluster.server.patch(resource, name, body, namespace, subresource=subresource)

    async def delete(
        self, path: str, *, grace_seconds: int | None = None, propagation: Propagation | None = None, uid: str = ""
    ) -> None:
        self.writes.append(("delete", path))
        resource, namespace, name, _ = _place(path)
        await self.cluster.delete(resource, name, namespace=namespace, grace_seconds=grace_seconds, uid=uid)

    # For tests

    def bind_claim(self, name: str, **meta: Any) -> None:
        """A claim as the controller that gives out volumes leaves it."""
        named = {"name": name, "namespace": "default", **meta}
        claim = {"metadata": named, "spec": CLAIM_SPEC, "status": {"phase": "Bound"}}
        self.cluster.put(resources.VOLUME_CLAIMS, claim)

    @property
    def down(self) -> bool:
        return not self.cluster.available

    @down.setter
    def down(self, away: bool) -> None:
        self.cluster.available = not away

    @property
    def objects(self) -> dict[str, Object]:
        """All objects by their paths."""
        return {
            resource.path(namespace_of(obj), name_of(obj)): obj
            for resource in _RESOURCES.values()
            for obj in self.cluster.objects(resource)
        }

    def pod(self, name: str) -> Object:
        return self.objects.get(f"/api/v1/namespaces/default/pods/{name}", {})

    def status(self, name: str) -> Object:
        status: Object = self.pod(name).get("status") or {}
        return status

    def container(self, name: str, container: str = "run") -> Object:
        """The status of a container of a pod, init or not."""
        status = self.status(name)
        every = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
        return next((dict(item) for item in every if item["name"] == container), {})

    def waiting(self, name: str, container: str = "run") -> str:
        return str(self.container(name, container).get("state", {}).get("waiting", {}).get("reason", ""))

    def events(self, name: str, reason: str = "") -> Sequence[Object]:
        return [
            obj
            for key, obj in self.objects.items()
            if "/events/" in key and obj["involvedObject"]["name"] == name and reason in ("", obj["reason"])
        ]

    def messages(self, name: str, reason: str = "") -> Sequence[str]:
        return [event["message"] for event in self.events(name, reason)]


def _place(path: str) -> tuple[Resource, str, str, str]:
    """The resource, the namespace, the name and the subresource that a path is about."""
    match = _PATH.fullmatch(path)
    assert match, path
    version, namespace, plural, name, subresource = (part or "" for part in match.groups())
    return _RESOURCES[version + plural], namespace, name, subresource


def pod(
    name: str, *command: str, container: Object | None = None, mounts: Mapping[str, Object] | None = None, **spec: Any
) -> Object:
    """A pod on the test's node with one container `run`, a shell command when one word is given.

    `mounts` has sources of volumes by where they are mounted; a volume is named like the last folder of that.
    """
    argv = ["sh", "-c", command[0]] if len(command) == 1 else list(command)
    run: Object = {"name": "run", "image": "compute-grid/test:1", "command": argv, **(container or {})}
    if mounts:
        names = {place: place.rpartition("/")[2] for place in mounts}
        run["volumeMounts"] = [{"name": named, "mountPath": place} for place, named in names.items()]
        spec["volumes"] = [{"name": names[place], **source} for place, source in mounts.items()]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": NODE, "restartPolicy": "Never", "containers": [run], **spec},
        "status": {"phase": "Pending"},
    }


@dataclass
class KnownServices:
    """Services that need no proxy: where each cluster IP is, and what was asked for."""

    places: dict[str, str] = field(default_factory=dict)
    asked: list[Collection[str]] = field(default_factory=list)

    async def places_of(self, cluster_ips: Collection[str]) -> dict[str, str]:
        self.asked.append(cluster_ips)
        return {address: self.places[address] for address in cluster_ips if address in self.places}


@dataclass
class World:
    """One node over an API server in memory; `restart` is a kubelet that was killed and starts again."""

    directory: Path
    api: FakeApi = field(default_factory=FakeApi)
    clock: JumpClock = field(default_factory=JumpClock)
    catalogue: ImageCatalogue = field(default_factory=ImageCatalogue)
    runtime_class: type[ProcessRuntime] = ProcessRuntime
    services: KnownServices = field(default_factory=KnownServices)
    images_directory: Path | None = None

    def __post_init__(self) -> None:
        self.addresses = AddressBook(self.directory / "addresses.json")
        self.addresses.open()
        self.sampler = Sampler(self.clock)
        self.web = SharedWeb()
        self.images = ImageStore(self.images_directory or self.directory / "images", self.catalogue)
        self._sampling = asyncio.create_task(self.sampler.run())
        self.kubelet = self._make()
        self.kubelet.start()

    def _make(self) -> Kubelet:
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        spec = MachineSpec(NODE, "127.0.0.1", capacity, capacity, ready_after=0.0)
        self.runtime = self.runtime_class(self.directory / "pods", self.sampler)
        host = Host(self.images, self.web, self.addresses, self.services, self.directory / "volumes", self.clock)
        return Kubelet(spec, self.api, self.runtime, host)

    async def run(self, body: Object) -> Object:
        return await self.api.create("/api/v1/namespaces/default/pods", body)

    async def delete(self, name: str, *, grace: int | None = None) -> None:
        await self.api.delete(f"/api/v1/namespaces/default/pods/{name}", grace_seconds=grace)

    async def phase(self, name: str, *wanted: str) -> Object:
        """Waits for a phase and returns the status then."""
        await eventually(lambda: self.api.status(name).get("phase") in wanted, f"{name} is {wanted}")
        return self.api.status(name)

    async def ready(self, name: str) -> None:
        await eventually(lambda: self.api.container(name).get("ready"), f"{name} is ready")

    async def gone(self, name: str) -> None:
        await eventually(lambda: not self.api.pod(name), f"{name} is gone")

    async def reason(self, name: str, reason: str) -> Object:
        await eventually(lambda: self.api.waiting(name) == reason, f"{name} waits with {reason}")
        return self.api.container(name)

    async def event(self, name: str, reason: str) -> str:
        """Waits for an event and returns the message of its first."""
        await eventually(lambda: self.api.messages(name, reason), f"{name} has event {reason}")
        return self.api.messages(name, reason)[0]

    def attempt(self, name: str) -> Attempt:
        """The first of the pod's container `run`."""
        return self.runtime.attempts(self.api.pod(name)["metadata"]["uid"], "run")[0]

    def log(self, name: str, container: str = "run") -> str:
        attempts = self.runtime.attempts(self.api.pod(name)["metadata"]["uid"], container)
        if not attempts:
            return ""
        lines = (attempts[-1].directory / "log" / "0.log").read_text().splitlines()
        return "\n".join(line.split(" ", 3)[3] for line in lines)

    async def restart(self) -> None:
        await self.kubelet.detach()
        self.kubelet = self._make()
        self.kubelet.start()

    async def close(self) -> None:
        await self.kubelet.detach()
        await self.kubelet.drop()
        self._sampling.cancel()
        await self.web.close()
        self.addresses.close()
