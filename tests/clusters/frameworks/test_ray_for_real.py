"""Ray itself, from its own packages: a real head and real workers on loopback addresses of one machine, as on the embedded cluster."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from grid.sandbox.imagestore import ImageStore
from tests.clusters.frameworks.ray_cluster import RayCluster, ray_spec
from tests.clusters.frameworks.spark_processes import Machine
from tests.end_to_end.grid import IMAGES
from tests.support.turns import rays_turn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
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
        lambda report: sum(worker.bytes_held for worker in report.workers.values()) > 2 * 4_000_000
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
        )
    )
