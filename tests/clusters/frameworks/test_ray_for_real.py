"""Ray itself, from its own packages: a real head and real workers on loopback addresses of one machine, as on the embedded cluster."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from grid.clusters.frameworks.base import ClusterReport, WorkerPod
from grid.clusters.frameworks.ray import Ray
from grid.executions.spec import ExecutionSpec
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.serviceproxy.endpoints import Backend
from grid.sandbox.serviceproxy.forwarding import ForwardedConnections, Listener
from tests.clusters.cluster_specs import ray_spec
from tests.clusters.frameworks.spark_processes import Container, Machine, reported
from tests.end_to_end.grid import IMAGES
from tests.support.ports import rays_turn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
RAY = Ray()
_PATIENCE = 900  # seconds; a head needs ten on an idle machine
_SERVICES = f"127.{os.getpid() // 250 % 250 + 2}.{os.getpid() % 250 + 2}"
_LONG = """
import os, time
import numpy, ray
ray.init()
@ray.remote
def part(number, folder):
    with open(f"{folder}/begun", "a") as begun:
        begun.write(f"{number}\\n")
    time.sleep(4)
    return numpy.full(500_000, number)
@ray.remote
def total(part):
    return int(part.sum())
parts = [part.remote(number, os.getcwd()) for number in range(20)]
while not os.path.exists("shrunk"):
    time.sleep(0.5)
print(sum(ray.get([total.remote(part) for part in parts])))
"""


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

    async def until(self, holds: Callable[[ClusterReport], bool], what: str) -> ClusterReport:
        return await reported(self.ask, what, holds=holds, within=_PATIENCE)

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


@pytest.fixture
def alone() -> Iterator[None]:
    with rays_turn():
        yield


@pytest.fixture
async def cluster(tmp_path: Path, alone: None) -> AsyncIterator[RayCluster]:
    """One that has not started. It is ended."""
    image, _ = await ImageStore(IMAGES).pull("compute-grid/ray:2.60")
    spec = ray_spec("shrinking", drain_seconds=120)
    machine = Machine(tmp_path, image.environment, spec)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
        try:
            made = RayCluster(machine, spec, f"{_SERVICES}.200", http)
            yield made
            await made.close()
        finally:
            machine.end_all()


async def test_shrinking_to_one_worker_computes_each_task_once(cluster: RayCluster, tmp_path: Path) -> None:
    await cluster.start(workers=5)
    folder = tmp_path / "notebook"
    program = cluster.run_program(_LONG, folder)
    # Some results are held, some tasks run, some wait.
    report = await cluster.until(
        lambda report: sum(worker.bytes_held for worker in report.workers.values()) > 2 * 4_000_000, "results are held"
    )
    assert report.wanted_workers > 1
    codes = await asyncio.gather(*(cluster.remove(worker) for worker in cluster.workers[1:]))
    (folder / "shrunk").touch()
    assert await asyncio.to_thread(program.wait, 300) == 0, (folder / "out").read_text()
    assert (folder / "out").read_text().splitlines()[-1] == str(500_000 * sum(range(20)))
    assert sorted(map(int, (folder / "begun").read_text().split())) == list(range(20))
    assert codes == [0, 0, 0, 0]
    # What is waited for and in use is as old as the last look of Ray's own monitor, every five seconds.
    await cluster.until(
        lambda report: (
            [(name, worker.tasks) for name, worker in report.workers.items()] == [(cluster.workers[0].name, 0)]
            and (report.pending_tasks, report.wanted_workers) == (0, 0)
        ),
        "one worker is left, with nothing to do",
    )
