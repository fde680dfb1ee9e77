"""Ray clusters of real processes: what our `Program`s become on the embedded cluster, each pod at a loopback address of its own, with
the Service of the head in front."""

import asyncio
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from grid.clusters.frameworks.base import ClusterReport, FrameworkSilent, WorkerPod
from grid.clusters.frameworks.ray import Ray
from grid.executions.spec import ExecutionSpec
from grid.sandbox.serviceproxy.endpoints import Backend
from grid.sandbox.serviceproxy.forwarding import ForwardedConnections, Listener
from tests.clusters.cluster_specs import small_spec, tier
from tests.clusters.frameworks.spark_processes import Container, Machine

RAY = Ray()
_PATIENCE = 900  # seconds; a head needs ten on an idle machine


def ray_spec(id: str = "c1", **changes: Any) -> ExecutionSpec:
    return small_spec("ray", id=id, head=tier(memory="2Gi"), **changes)


@dataclass
class RayCluster:
    """One cluster; `service` is the address of its head's Service. To be closed, whatever became of it."""

    machine: Machine
    spec: ExecutionSpec
    service: str
    http: aiohttp.ClientSession
    workers: list[Container] = field(default_factory=list)
    connections: ForwardedConnections = field(default_factory=ForwardedConnections)
    _listeners: list[Listener] = field(default_factory=list)
    _programs: list[subprocess.Popen[bytes]] = field(default_factory=list)

    async def start(self, workers: int) -> None:
        """All at once, as Kubernetes does; returns when all are ready."""
        program = RAY.head(self.spec)
        self.head = self.machine.start(f"{self.spec.id}-head", program)
        self._listeners = [
            Listener(self.service, port.number, [Backend(self.head.address, port.target)], self.connections)
            for port in program.ports
        ]
        self.workers = [
            self.machine.start(f"{self.spec.id}-worker-{number}", RAY.worker(self.spec, self.service))
            for number in range(workers)
        ]
        for container in (self.head, *self.workers):
            await self.ready(container)

    async def close(self) -> None:
        for program in self._programs:
            program.kill()
            program.wait()
        for listener in self._listeners:
            await listener.close()
        await self.connections.close()

    async def ready(self, container: Container) -> None:
        probe = container.program.readiness["exec"]["command"]
        async with asyncio.timeout(_PATIENCE):
            while await asyncio.to_thread(subprocess.call, probe, env=container.environment, stderr=subprocess.DEVNULL):
                if container.process.poll() is not None:
                    self._restart(container)
                await asyncio.sleep(1)

    def _restart(self, container: Container) -> None:
        """Ray gives up when its parts do not come up in time, which a busy machine may bring about; kubelets start it again."""
        container.process = self.machine.start(container.name, container.program, container.address).process

    async def remove(self, worker: Container) -> int:
        """As the kubelet does: the hook, then SIGTERM. The hook's exit code."""
        assert self.spec.cluster is not None
        code = await asyncio.to_thread(worker.run_hook, self.spec.cluster.drain_seconds + 15)
        await asyncio.to_thread(worker.end)
        return code

    async def ask(self) -> ClusterReport:
        pods = [WorkerPod(worker.name, worker.address) for worker in self.workers]
        return await RAY.ask(self.http, self.head.address, self.spec, pods)

    async def until(self, holds: Callable[[ClusterReport], bool]) -> ClusterReport:
        """The first report for which something holds."""
        last: object = None
        try:
            async with asyncio.timeout(_PATIENCE):
                while True:
                    try:
                        report = last = await self.ask()
                    except FrameworkSilent as error:
                        last = error
                    else:
                        if holds(report):
                            return report
                    await asyncio.sleep(0.5)
        except TimeoutError:
            raise AssertionError(f"never came true; last: {last}") from None

    def run_program(self, program: str, folder: Path) -> subprocess.Popen[bytes]:
        """A notebook or job of the attached workspace. What it prints goes to `folder`/out."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "main.py").write_text(program)
        with (folder / "out").open("wb") as out:
            started = subprocess.Popen(
                ["python", "main.py"],
                cwd=folder,
                env={**self.head.environment, **RAY.client_variables(self.spec, self.service)},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self._programs.append(started)
        return started
