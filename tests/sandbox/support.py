"""An embedded API server in the test's own process, a clock that runs fast, and a kubelet that only walks the states."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from grid.core.errors import GridError
from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.client import (
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PODS,
    Api,
    Client,
    Clock,
    Mirrors,
    Object,
    format_time,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    uid_of,
)
from grid.sandbox.cluster import client_of

START = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)


class FastClock:
    """Real time, `speed` times as fast, from a fixed start: recorded seconds pass in tenths of them.

    It stands still while this thread could run and other programs have the machine, so that on a busy one no less is done in a
    recorded second.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self._schedule = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._started = self._own_time()

    def _own_time(self) -> float:
        """Seconds without those for which the kernel has kept this thread waiting for a processor, where it tells."""
        now = time.monotonic()
        try:
            return now - int(self._schedule.read_text().split()[1]) / 1e9
        except (OSError, IndexError):
            return now

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return (self._own_time() - self._started) * self.speed

    async def sleep(self, seconds: float) -> None:
        until = self.monotonic() + seconds
        await asyncio.sleep(seconds / self.speed)
        while (rest := until - self.monotonic()) > 0:  # noqa: ASYNC110  nobody announces that time has passed
            await asyncio.sleep(rest / self.speed)


class Runs(Protocol):
    async def run(self) -> None: ...


@asynccontextmanager
async def running(*parts: Runs) -> AsyncIterator[None]:
    """Runs the parts inside the block."""
    tasks = [asyncio.create_task(part.run()) for part in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    failures = [
        item for item in results if isinstance(item, Exception) and not isinstance(item, asyncio.CancelledError)
    ]
    assert not failures, failures


@asynccontextmanager
async def api_server(folder: Path, clock: Clock) -> AsyncIterator[Client]:
    """A fresh embedded API server and an admin's client of it."""
    server = ApiServer(folder, Tokens.load_or_make(folder / "tokens.json"), clock=clock.now)
    await server.start()
    try:
        async with client_of(server) as client:
            yield client
    finally:
        await server.stop()


def make_node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    labels: dict[str, str] | None = None,
    taints: Sequence[Object] = (),
    ready: bool = True,
    now: datetime = START,
) -> Object:
    stamp = format_time(now)
    capacity = {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi"}
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "KubeletReady" if ready else "KubeletNotReady",
        "message": "",
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": stamp,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [condition]},
    }


async def add_node(client: Api, node: Object) -> None:
    """Creates a node, then its status: a creation ignores the status."""
    created = await client.create(NODES.path(), node)
    await client.update(NODES.path(name=name_of(node), subresource="status"), created | {"status": node["status"]})


async def add_namespace(client: Api, name: str) -> None:
    await client.create(NAMESPACES.path(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def make_pod(
    name: str, *, namespace: str = "default", requests: dict[str, str] | None = None, **spec: object
) -> Object:
    wanted = requests or {}
    # Kubernetes wants limits, equal to the requests, for what cannot be shared.
    limits = {resource: amount for resource, amount in wanted.items() if "/" in resource}
    resources = {"requests": wanted, "limits": limits}
    container = {"name": "run", "image": "registry.example/app:1", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": [container], **spec},
    }


def make_deployment(name: str, replicas: int, *, cpu: str = "10m", **spec: object) -> Object:
    container = {"name": "app", "image": "registry.example/app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 5, "containers": [container]},
            },
            **spec,
        },
    }


@dataclass(frozen=True, slots=True)
class Plan:
    """How long the fake kubelet takes, in seconds, and whose pods never become ready."""

    start: float = 0.5
    ready: float = 1.0
    stop: float = 1.0
    never_ready_images: tuple[str, ...] = ()


@dataclass(slots=True)
class FakeKubelet:
    """Starts, readies and ends the pods of every node, without running anything."""

    client: Api
    clock: Clock
    plan: Plan = field(default_factory=Plan)
    mirrors: Mirrors = field(init=False)
    _started: set[str] = field(default_factory=set)
    _ending: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.mirrors = Mirrors(self.client, clock=self.clock)
        self.mirrors.of(PODS).subscribe(self._changed)

    @property
    def pods(self) -> list[Object]:
        return list(self.mirrors.of(PODS).values())

    async def run(self) -> None:
        async with self.mirrors.running():
            try:
                await asyncio.Event().wait()
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or not new["spec"].get("nodeName"):
            return
        if is_terminating(new) and uid_of(new) not in self._ending:
            self._ending.add(uid_of(new))
            self._spawn(self._end(new))
        elif uid_of(new) not in self._started and not is_terminating(new):
            self._started.add(uid_of(new))
            self._spawn(self._start(new))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, pod: Object) -> None:
        image = pod["spec"]["containers"][0]["image"]
        await self.clock.sleep(self.plan.start)
        await self._set_ready(pod, "False")
        if image.endswith(self.plan.never_ready_images or ("never",)):
            return
        await self.clock.sleep(self.plan.ready)
        await self._set_ready(pod, "True")

    async def _set_ready(self, pod: Object, status: str) -> None:
        now = format_time(self.clock.now())
        condition = {"type": "Ready", "status": status, "lastTransitionTime": now}
        container = pod["spec"]["containers"][0]
        state = {
            "name": container["name"],
            "ready": status == "True",
            "restartCount": 0,
            "image": container["image"],
            "imageID": "",
            "state": {"running": {"startedAt": now}},
        }
        body = {"status": {"phase": "Running", "conditions": [condition], "containerStatuses": [state]}}
        with suppress(GridError):
            current = self.mirrors.of(PODS).get(key_of(pod))
            if current is not None and uid_of(current) == uid_of(pod):
                path = PODS.path(namespace_of(pod), name_of(pod), "status")
                await self.client.patch(path, body, kind="strategic")

    async def _end(self, pod: Object) -> None:
        await self.clock.sleep(self.plan.stop)
        with suppress(GridError):
            await self.client.delete(PODS.path(namespace_of(pod), name_of(pod)), grace_seconds=0, uid=uid_of(pod))
