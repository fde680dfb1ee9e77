"""What the kubelet's tests share: an API server in memory, a clock that can be put forward, and one node to run pods on."""

import asyncio
import copy
import itertools
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from grid.sandbox.client import ApiError, Object, ObjectList, PatchKind, WatchEvent, format_time, labels_of
from grid.sandbox.images import ImageCatalogue, ImageStore
from grid.sandbox.kubelet.addresses import AddressBook
from grid.sandbox.kubelet.handlers import SharedWeb
from grid.sandbox.kubelet.kubelet import Host, Kubelet
from grid.sandbox.kubelet.node import MachineSpec
from grid.sandbox.kubelet.process_runtime import ProcessRuntime
from grid.sandbox.kubelet.sampler import Sampler

_DEADLINE_SECONDS = 60.0
NODE = "node-1"


async def eventually(condition: Callable[[], Any], what: str = "the condition holds") -> Any:
    """Waits until the condition holds and returns what it returned; fails after a generous deadline."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not (result := condition()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        await asyncio.sleep(0.01)
    return result


def running(folder: Path, *command: str) -> list[psutil.Process]:
    """Those of the test with this folder; another run of the tests has the same programs."""
    return [
        item
        for item in psutil.process_iter(["cmdline", "cwd"])
        if item.info["cmdline"] == list(command) and Path(item.info["cwd"] or "/").is_relative_to(folder)
    ]


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


class FakeApi:
    """Objects by path, with watches, graceful pod deletion and uid preconditions. `down` makes every request fail."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.down = False
        self.refused = 0
        self.writes: list[tuple[str, str]] = []
        self._versions = itertools.count(1)
        self._history: list[tuple[int, str, str, Object]] = []
        self._changed = asyncio.Event()

    async def get(self, path: str) -> Object:
        self._check()
        return copy.deepcopy(self._find(path))

    async def list(
        self, path: str, *, label_selector: str = "", field_selector: str = "", limit: int = 500
    ) -> ObjectList:
        self._check()
        found = [
            copy.deepcopy(obj) for key, obj in self.objects.items() if _in(path, key) and _matches(obj, field_selector)
        ]
        if label_selector.startswith("!"):
            found = [obj for obj in found if label_selector[1:] not in labels_of(obj)]
        elif label_selector:
            key, _, value = label_selector.partition("=")
            found = [obj for obj in found if labels_of(obj).get(key) == value]
        return ObjectList(found, str(self._latest()))

    async def create(self, path: str, body: Object) -> Object:
        self._check("create", path)
        if path.endswith("/token"):
            return {"status": {"token": "a-token"}}
        obj = copy.deepcopy(body)
        meta = obj.setdefault("metadata", {})
        if "/namespaces/" in path:
            meta["namespace"] = path.split("/namespaces/")[1].split("/")[0]
        key = f"{path}/{meta['name']}"
        if key in self.objects:
            raise ApiError(409, "AlreadyExists", f"{meta['name']} already exists")
        meta.setdefault("uid", str(uuid.uuid4()))
        meta["creationTimestamp"] = format_time(datetime.now(UTC))
        self._store("ADDED", key, obj)
        return copy.deepcopy(obj)

    async def update(self, path: str, body: Object) -> Object:
        self._check("update", path)
        self._find(path)
        self._store("MODIFIED", path, copy.deepcopy(body))
        return copy.deepcopy(body)

    async def patch(self, path: str, body: object, *, kind: PatchKind = "merge") -> Object:
        self._check("patch", path)
        path = path.removesuffix("/status")
        before = self._find(path)
        assert isinstance(body, dict)
        if body.get("metadata", {}).get("uid", before["metadata"]["uid"]) != before["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "the UID in the precondition does not match")
        after = _merged(copy.deepcopy(before), copy.deepcopy(body))
        if after != before:
            self._store("MODIFIED", path, after)
        return copy.deepcopy(after)

    async def delete(
        self, path: str, *, grace_seconds: int | None = None, uid: str = "", propagation: str = ""
    ) -> Object:
        self._check("delete", path)
        obj = copy.deepcopy(self._find(path))
        if uid and obj["metadata"]["uid"] != uid:
            raise ApiError(409, "Conflict", "the UID in the precondition does not match")
        grace = grace_seconds
        if grace is None:
            grace = obj.get("spec", {}).get("terminationGracePeriodSeconds", 30)
        if "/pods/" in path and grace:
            obj["metadata"]["deletionTimestamp"] = format_time(datetime.now(UTC))
            obj["metadata"]["deletionGracePeriodSeconds"] = grace
            self._store("MODIFIED", path, obj)
            return obj
        del self.objects[path]
        self._store("DELETED", path, obj)
        return obj

    async def watch(
        self,
        path: str,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 240,
    ) -> AsyncIterator[WatchEvent]:
        seen = int(resource_version)
        while True:
            self._check()
            changed = self._changed
            for version, type_, key, obj in self._history:
                if version > seen and _in(path, key) and _matches(obj, field_selector):
                    yield WatchEvent(type_, copy.deepcopy(obj))
            seen = self._latest()
            await changed.wait()

    # For tests

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

    def _check(self, verb: str = "", path: str = "") -> None:
        if self.down:
            self.refused += 1
            raise ApiError(0, "Unreachable", "the API server is away")
        if verb:
            self.writes.append((verb, path))

    def _find(self, path: str) -> Object:
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        return self.objects[path]

    def _latest(self) -> int:
        return self._history[-1][0] if self._history else 0

    def _store(self, type_: str, path: str, obj: Object) -> None:
        version = next(self._versions)
        obj["metadata"]["resourceVersion"] = str(version)
        if type_ != "DELETED":
            self.objects[path] = obj
        self._history.append((version, type_, path, copy.deepcopy(obj)))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _in(path: str, key: str) -> bool:
    """Whether an object's path is in a collection, also in that of all namespaces."""
    collection, _, _ = key.rpartition("/")
    return collection == path or (
        "/namespaces/" in collection and collection.rpartition("/")[2] == path.rpartition("/")[2]
    )


def _matches(obj: Object, field_selector: str) -> bool:
    if not field_selector:
        return True
    assert field_selector.startswith("spec.nodeName=")
    return bool(obj.get("spec", {}).get("nodeName") == field_selector.partition("=")[2])


def _merged(before: Any, change: Any) -> Any:
    if not isinstance(change, dict) or not isinstance(before, dict):
        return change
    result = dict(before)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key, {}), value)
    return result


def pod(name: str, *command: str, container: Object | None = None, **spec: Any) -> Object:
    """A pod on the test's node with one container `run`, a shell command when one word is given."""
    argv = ["sh", "-c", command[0]] if len(command) == 1 else list(command)
    run: Object = {"name": "run", "image": "compute-grid/test:1", "command": argv, **(container or {})}
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
