"""The nodes of this machine: booted, removed, and the same ones again after a restart.

The fleet is the embedded cluster's `Cloud`: the autoscaler asks it for machines. All nodes live in one process and share one
sampler, one HTTPS server and one images directory; a node costs a watch and a heartbeat.
"""

import asyncio
import contextlib
import dataclasses
import json
import logging
import random
import shutil
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grid.sandbox.client import Api, Clock, Object, SystemClock
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet.addresses import AddressBook
from grid.sandbox.kubelet.backoff import Delays
from grid.sandbox.kubelet.capacity import allocatable_of
from grid.sandbox.kubelet.certificate import serving_context
from grid.sandbox.kubelet.handlers import Handlers, SharedWeb, SimulatedHandlers
from grid.sandbox.kubelet.kubelet import Host, Kubelet
from grid.sandbox.kubelet.localvolumes import LocalVolumes
from grid.sandbox.kubelet.node import MachineSpec
from grid.sandbox.kubelet.process_runtime import ProcessRuntime
from grid.sandbox.kubelet.runtime import ContainerRuntime
from grid.sandbox.kubelet.sampler import Sampler
from grid.sandbox.kubelet.server import NodeServer
from grid.sandbox.kubelet.services import end_task
from grid.sandbox.kubelet.shim import boot_id
from grid.sandbox.kubelet.simulated_runtime import SimulatedRuntime
from grid.sandbox.pools import DEFAULT_POOLS, NodePool
from grid.sandbox.serviceproxy import ServiceProxy

logger = logging.getLogger(__name__)

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as Kubernetes' own random names: no vowels, so no words
_SUFFIX_LENGTH = 5
_BOOT_RETRY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """Durations in seconds, and how the API server reaches the nodes.

    `kubelet_token` is the token that the API server must present; "" answers every client on this machine.
    `addresses_only`: nodes report their address as host name, because a real API server asks for that first and no
    DNS knows it. `simulated`: containers only walk through their states, see `simulated_runtime`.
    """

    boot_seconds: float = 3.0
    ready_seconds: float = 2.0
    stop_seconds: float = 5.0
    kubelet_token: str = ""
    addresses_only: bool = False
    simulated: bool = False
    delays: Delays = field(default_factory=Delays)


@dataclass(slots=True)
class _Machine:
    pool: str
    kubelet: Kubelet | None = None
    booting: asyncio.Task[None] | None = None


class Fleet:
    """The nodes of this machine. `start` returns once the nodes of last time (or the pools' initial ones) are booting."""

    def __init__(
        self,
        api: Api,
        *,
        data_dir: Path,
        images: ImageStore,
        pools: Sequence[NodePool] = DEFAULT_POOLS,
        settings: FleetSettings | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._api = api
        self._data = data_dir
        self._images = images
        self._limited_pools = pools
        self._settings = settings or FleetSettings()
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()
        self._machines: dict[str, _Machine] = {}
        self._addresses = AddressBook(data_dir / "addresses.json", rng=self._rng)
        self._proxy = ServiceProxy(api, self._addresses, clock=self._clock)
        self._proxying: asyncio.Task[None] | None = None
        self._sampler = Sampler(self._clock)
        self._web = SharedWeb()
        self._server: NodeServer | None = None
        self._sampling: asyncio.Task[None] | None = None
        self._boot_id = ""
        self._rebooted = False

    @property
    def _pools(self) -> Mapping[str, NodePool]:
        """The pools by name, with their limits of now."""
        return {pool.name: pool for pool in self._limited_pools}

    # Life

    async def start(self) -> None:
        self._data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._addresses.open()
        self._server = NodeServer(serving_context(self._data), self._clock, token=self._settings.kubelet_token)
        await self._server.start()
        self._sampling = asyncio.create_task(self._sampler.run())
        self._proxying = asyncio.create_task(self._proxy.run())
        stored = self._load()
        self._boot_id, self._rebooted = _boot(stored)
        known: dict[str, str] = stored.get("nodes", {})
        for name, pool in known.items():
            if pool in self._pools:
                self._machines[name] = _Machine(pool)
            else:
                logger.warning("node name=%s belongs to pool=%s, which there is no more; it stays away", name, pool)
        for pool_name, template in self._pools.items():
            # The initial number counts at the first start only; later the autoscaler may have wanted fewer.
            wanted = template.initial if not stored else template.minimum
            while len(self.instances(pool_name)) < wanted:
                self._machines[self._new_name(pool_name)] = _Machine(pool_name)
        self._save(clean=False)
        for name in list(self._machines):
            self._boot(name, self._settings.boot_seconds if name not in known else 0.0)

    async def stop(self) -> None:
        """End all containers, killing them after some seconds. Nodes come back with their pods at the next start."""
        machines = list(self._machines.values())
        for machine in machines:
            await end_task(machine.booting)
        kubelets = [machine.kubelet for machine in machines if machine.kubelet is not None]
        await asyncio.gather(*(kubelet.stop(self._settings.stop_seconds) for kubelet in kubelets))
        self._save(clean=True)
        await self._close()

    async def detach(self) -> None:
        """End like a killed process: containers keep running, and the next start takes them over."""
        for machine in self._machines.values():
            await end_task(machine.booting)
            if machine.kubelet is not None:
                await machine.kubelet.detach()
        await self._close()

    async def _close(self) -> None:
        await end_task(self._proxying)
        await end_task(self._sampling)
        if self._server is not None:
            await self._server.stop()
        await self._web.close()
        self._addresses.close()

    def summaries(self) -> dict[str, Object]:
        """Return the usage of the nodes by name, without nodes that have not come up yet."""
        machines = self._machines.items()
        return {name: machine.kubelet.summary() for name, machine in machines if machine.kubelet is not None}

    # Cloud

    def instances(self, pool: str) -> list[str]:
        return [name for name, machine in self._machines.items() if machine.pool == pool]

    async def create(self, pool: str) -> str:
        if pool not in self._pools:
            raise OSError(f"there is no node pool {pool}")
        if len(self.instances(pool)) >= self._pools[pool].maximum:
            raise OSError(f"node pool {pool} already has its maximum of {self._pools[pool].maximum} nodes")
        name = self._new_name(pool)
        self._machines[name] = _Machine(pool)
        self._save(clean=False)
        self._boot(name, self._settings.boot_seconds)
        return name

    async def delete(self, node_name: str) -> None:
        machine = self._machines.pop(node_name, None)
        if machine is None:
            return
        self._save(clean=False)
        await end_task(machine.booting)
        if self._server is not None:
            await self._server.remove(self._addresses.node(node_name))
        if machine.kubelet is not None:
            await machine.kubelet.drop()
        await asyncio.to_thread(shutil.rmtree, self._node_directory(node_name), ignore_errors=True)
        self._addresses.release_node(node_name)

    # Nodes

    def _boot(self, name: str, seconds: float) -> None:
        machine = self._machines[name]
        machine.booting = asyncio.create_task(self._bring_up(name, machine, seconds), name=f"boot {name}")

    async def _bring_up(self, name: str, machine: _Machine, seconds: float) -> None:
        await self._clock.sleep(seconds)
        while machine.kubelet is None:
            try:
                kubelet = self._kubelet(name, self._pools[machine.pool])
                port = await self._server.add(kubelet.spec.address, kubelet) if self._server is not None else 0
                kubelet.start(port)
                machine.kubelet = kubelet
            except Exception:
                logger.exception("node name=%s does not come up and is tried again", name)
                await self._clock.sleep(_BOOT_RETRY_SECONDS)

    def _kubelet(self, name: str, pool: NodePool) -> Kubelet:
        spec = MachineSpec(
            name=name,
            address=self._addresses.node(name),
            capacity=pool.capacity,
            allocatable=allocatable_of(pool.capacity),
            labels=pool.node_labels(name),
            taints=pool.node_taints(),
            boot_id=self._boot_id,
            rebooted=self._rebooted,
            ready_after=self._settings.ready_seconds,
            host_name=self._addresses.node(name) if self._settings.addresses_only else "",
        )
        host = Host(
            images=self._images,
            web=self._web,
            addresses=self._addresses,
            service_places=self._proxy,
            claims=self._data / "volumes",
            clock=self._clock,
            delays=self._settings.delays,
            handlers=SimulatedHandlers if self._settings.simulated else Handlers,
        )
        return Kubelet(spec, self._api, self._runtime(self._node_directory(name) / "pods"), host)

    def _runtime(self, directory: Path) -> ContainerRuntime:
        if self._settings.simulated:
            return SimulatedRuntime(directory, self._clock)
        return ProcessRuntime(directory, self._sampler)

    def _node_directory(self, name: str) -> Path:
        return self._data / "nodes" / name

    def _new_name(self, pool: str) -> str:
        while True:
            name = f"{pool}-{''.join(self._rng.choices(_LETTERS, k=_SUFFIX_LENGTH))}"
            if name not in self._machines:
                return name

    # State

    def _load(self) -> dict[str, dict[str, str]]:
        path = self._data / "fleet.json"
        with contextlib.suppress(FileNotFoundError):
            try:
                stored: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
                return stored
            except ValueError:
                logger.warning("%s cannot be read; this machine starts with new nodes", path)
        return {}

    def _save(self, *, clean: bool) -> None:
        content = {
            "nodes": {name: machine.pool for name, machine in self._machines.items()},
            "boot": {"id": self._boot_id, "machine": boot_id(), "clean": "yes" if clean else ""},
        }
        unfinished = self._data / "fleet.json.unfinished"
        unfinished.write_text(json.dumps(content, indent=2), encoding="utf-8")
        unfinished.replace(self._data / "fleet.json")


def _boot(stored: Mapping[str, Mapping[str, str]]) -> tuple[str, bool]:
    """Return the nodes' boot id, and whether it is new: it is when the last stop was clean or the machine was restarted."""
    before = stored.get("boot", {})
    if before.get("id") and before.get("machine") == boot_id() and not before.get("clean"):
        return before["id"], False
    return str(uuid.uuid4()), bool(before)


async def run_kubelets(
    api: Api,
    *,
    data_dir: Path,
    images: ImageStore,
    pools: Sequence[NodePool] = DEFAULT_POOLS,
    settings: FleetSettings | None = None,
    background: Callable[[Fleet], Iterable[Coroutine[Any, Any, None]]] = lambda _: (),
) -> None:
    """Join the pools' nodes to another API server and run their pods until cancelled; then end all containers.

    `background` returns coroutines that run as long as the fleet does.
    """
    settings = dataclasses.replace(settings or FleetSettings(), addresses_only=True)
    fleet = Fleet(api, data_dir=data_dir, images=images, pools=pools, settings=settings)
    await fleet.start()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(LocalVolumes(api, data_dir / "volumes").run())
            for part in background(fleet):
                group.create_task(part)
    finally:
        await fleet.stop()
