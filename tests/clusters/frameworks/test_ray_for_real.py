"""Ray itself, from its own packages: real heads and workers on loopback addresses of one machine, as on the embedded cluster."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from grid.executions.spec import ExecutionSpec
from grid.sandbox.imagestore import ImageStore
from tests.clusters.frameworks.ray_cluster import RayCluster, ray_spec
from tests.clusters.frameworks.spark_processes import Machine
from tests.end_to_end.grid import IMAGES
from tests.support.turns import rays_turn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
_SERVICES = f"127.{os.getpid() // 250 % 250 + 2}.{os.getpid() % 250 + 2}"
_HELLO = """
import ray
ray.init()
@ray.remote
def square(number):
    return number * number, ray.util.get_node_ip_address()
found = ray.get([square.remote(number) for number in range(20)])
print(sum(number for number, _ in found), *sorted({address for _, address in found}), ray.cluster_resources()["CPU"])
"""
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
async def cluster(tmp_path: Path, alone: None) -> AsyncIterator[Callable[[ExecutionSpec], RayCluster]]:
    """Makes clusters that have not started, and ends them."""
    image, _ = await ImageStore(IMAGES).pull("compute-grid/ray:2.60")
    machine = Machine(tmp_path, image.environment, ray_spec())
    made: list[RayCluster] = []
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:

        def make(spec: ExecutionSpec) -> RayCluster:
            made.append(RayCluster(machine, spec, f"{_SERVICES}.{200 + len(made)}", http))
            return made[-1]

        try:
            yield make
            for each in made:
                await each.close()
        finally:
            machine.end_all()


async def test_notebooks_of_two_clusters_find_their_own(
    cluster: Callable[[ExecutionSpec], RayCluster], tmp_path: Path
) -> None:
    clusters = [cluster(ray_spec(cluster_id)) for cluster_id in ("first", "second")]
    await asyncio.gather(*(each.start(workers=1) for each in clusters))
    for each in clusters:
        folder = tmp_path / each.spec.id / "notebook"
        program = each.run_program(_HELLO, folder)
        assert await asyncio.to_thread(program.wait, 300) == 0, (folder / "out").read_text()
        line = (folder / "out").read_text().splitlines()[-1]
        assert line == f"2470 {each.workers[0].address} 1.0"


async def test_shrinking_to_one_worker_computes_each_task_once(
    cluster: Callable[[ExecutionSpec], RayCluster], tmp_path: Path
) -> None:
    shrinking = cluster(ray_spec("shrinking", drain_seconds=120))
    await shrinking.start(workers=5)
    folder = tmp_path / "notebook"
    program = shrinking.run_program(_LONG, folder)
    # Some results are held, some tasks run, some wait.
    report = await shrinking.until(
        lambda report: sum(worker.bytes_held for worker in report.workers.values()) > 2 * 4_000_000
    )
    assert report.wanted_workers > 1
    codes = await asyncio.gather(*(shrinking.remove(worker) for worker in shrinking.workers[1:]))
    (folder / "shrunk").touch()
    assert await asyncio.to_thread(program.wait, 300) == 0, (folder / "out").read_text()
    assert (folder / "out").read_text().splitlines()[-1] == str(500_000 * sum(range(20)))
    assert sorted(map(int, (folder / "begun").read_text().split())) == list(range(20))
    assert codes == [0, 0, 0, 0]
    # What is waited for and in use is as old as the last look of Ray's own monitor, every five seconds.
    await shrinking.until(
        lambda report: (
            [(name, worker.tasks) for name, worker in report.workers.items()] == [(shrinking.workers[0].name, 0)]
            and (report.pending_tasks, report.wanted_workers) == (0, 0)
        )
    )
