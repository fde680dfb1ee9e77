"""Dask itself, from its own packages: real schedulers and workers on loopback addresses of one machine, as on the embedded cluster."""

import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from grid.clusters.frameworks.base import ClusterReport, WorkerPod
from grid.clusters.frameworks.dask import Dask
from grid.executions.spec import ExecutionSpec
from grid.sandbox.imagestore import ImageStore
from tests.clusters.cluster_specs import HEAD_TIER, cluster, spec
from tests.clusters.frameworks.spark_processes import Container, Machine, reported
from tests.end_to_end.grid import IMAGES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
DASK = Dask()
PATIENCE = 60.0
SECONDS, BATCH = "0.2", 40  # how long each task takes, and how many there are at a time
# What a user's notebook does: no address anywhere. It goes on until it is told to come to an end; every task leaves a line each time
# that it is computed, and all results are held by the workers until then.
COMPUTATION = """
import json, sys, time
from pathlib import Path
from distributed import Client, wait

notes, enough, seconds, batch = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])

def note(name, number):
    with notes.open("a") as file:
        file.write(f"{name} {number}\\n")

def chunk(number):
    note("chunk", number)
    return bytes([number]) * 1_000_000

def work(data, number):
    time.sleep(seconds)
    note("work", number)
    return len(data) * data[0] + number

client = Client()
chunks = client.map(chunk, range(batch))
wait(chunks)
results = []
while not enough.exists():
    results += client.map(work, chunks, range(len(results), len(results) + batch))
    if len(results) == batch:
        print("begun", flush=True)
    wait(results[: -(batch // 2)])
total = sum(client.gather(results))
lost = [
    key
    for _, event in client.get_events("all")
    if event.get("action") == "remove-worker"
    for key in (*event["lost-computed-tasks"], *event["lost-scattered-tasks"])
]
print(json.dumps({"tasks": len(results), "total": total, "lost": lost}))
"""


@dataclass
class DaskCluster:
    machine: Machine
    http: aiohttp.ClientSession
    head: Container
    workers: list[Container] = field(default_factory=list)
    started: int = 0
    computation: "Computation | None" = None

    @property
    def spec(self) -> ExecutionSpec:
        return self.machine.spec

    def add_workers(self, count: int) -> None:
        for _ in range(count):
            self.started += 1
            program = DASK.worker(self.spec, self.head.address)
            self.workers.append(self.machine.start(f"cluster-abc-worker-{self.started}", program))

    async def ask(self) -> ClusterReport:
        pods = [WorkerPod(container.name, container.address) for container in self.workers]
        return await DASK.ask(self.http, self.head.address, self.spec, pods)

    async def until(self, condition: Callable[[ClusterReport], bool], what: str) -> ClusterReport:
        return await reported(self.ask, what, holds=condition, within=PATIENCE)

    def compute(self) -> "Computation":
        """The notebook of the workspace that it is attached to."""
        notes, enough = self.machine.folder / "notes", self.machine.folder / "enough"
        python = str(self.machine.image / "bin" / "python")
        program = subprocess.Popen(
            [python, "-c", COMPUTATION, str(notes), str(enough), SECONDS, str(BATCH)],
            env={**self.head.environment, **DASK.client_variables(self.spec, self.head.address)},
            cwd=self.machine.folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.computation = Computation(program, notes, enough)
        return self.computation

    async def remove(self, worker: Container) -> int:
        """As the kubelet does it; the exit code of the hook."""
        code = await asyncio.to_thread(worker.run_hook, 60)
        await asyncio.to_thread(worker.end)
        return code


@dataclass
class Computation:
    program: subprocess.Popen[str]
    notes: Path
    enough: Path

    async def line(self) -> str:
        assert self.program.stdout is not None
        return (await asyncio.to_thread(self.program.stdout.readline)).strip()

    async def ends(self) -> set[int]:
        """Lets it come to its end, which is right and without a loss; says how often tasks were computed."""
        assert self.program.poll() is None, "it must not have ended by itself"
        self.enough.touch()
        result = json.loads(await self.line())
        numbers = range(result["tasks"])
        assert result["total"] == sum(1_000_000 * (number % BATCH) + number for number in numbers)
        assert result["lost"] == []
        assert await asyncio.to_thread(self.program.wait, PATIENCE) == 0
        times = Counter(self.notes.read_text().splitlines())
        assert len(times) == BATCH + len(numbers)
        return set(times.values())

    def close(self) -> None:
        if self.program.poll() is None:
            self.program.kill()
        self.program.communicate()


@pytest.fixture
async def dask(tmp_path: Path) -> AsyncIterator[DaskCluster]:
    image, _ = await ImageStore(IMAGES).pull("compute-grid/dask:2026.8")
    # Served by path, which asks more of Dask than an origin of its own.
    address = "https://workspaces.test/w/abc/"
    of = spec(of=cluster(drain_seconds=30), tier=HEAD_TIER, address=address)
    machine = Machine(tmp_path, image.environment, of)
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
            started = DaskCluster(machine, http, machine.start("cluster-abc-head", DASK.head(of)))
            yield started
            if started.computation:
                started.computation.close()
    finally:
        machine.end_all()


async def test_computation_survives_shrinking_from_five_workers_to_one(dask: DaskCluster) -> None:
    dask.add_workers(5)
    await dask.until(lambda report: len(report.workers) == 5, "five workers have joined")
    computation = dask.compute()
    assert await computation.line() == "begun"
    report = await dask.until(
        lambda report: all(worker.tasks and worker.bytes_held for worker in report.workers.values()),
        "all five have work and hold results",
    )
    assert report.wanted_workers >= 1

    codes = await asyncio.gather(*(dask.remove(worker) for worker in dask.workers[1:]))

    assert codes == [0, 0, 0, 0]
    assert (await dask.ask()).workers.keys() == {dask.workers[0].name}
    assert await computation.ends() == {1}, "every task was computed once"
    await dask.until(lambda report: report.wanted_workers <= 1, "Dask wants no more workers when nothing is to do")


async def test_project_file_does_not_replace_an_installed_module(tmp_path: Path) -> None:
    image, _ = await ImageStore(IMAGES).pull("compute-grid/dask:2026.8")
    machine, witness = Machine(tmp_path, image.environment, spec(of=cluster(), tier=HEAD_TIER)), tmp_path / "witness"
    for folder in (tmp_path / "cluster-abc-head", tmp_path / "cluster-abc-worker-1"):
        folder.mkdir()
        for name in ("dask", "distributed", "click", "tornado", "json", "asyncio", "multiprocessing", "sitecustomize"):
            (folder / f"{name}.py").write_text(f"open({str(witness)!r}, 'a').write({name!r} + '\\n')\n")
        (folder / "beside.py").write_text("WORD = 'of the project'\n")
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
            head = machine.start("cluster-abc-head", DASK.head(machine.spec))
            dask = DaskCluster(machine, http, head)
            dask.add_workers(1)
            await dask.until(lambda report: len(report.workers) == 1, "a worker has joined")
            ask = "from distributed import Client; print(Client().submit(lambda: __import__('beside').WORD).result())"
            notebook = await asyncio.to_thread(
                subprocess.run,
                [str(image.environment / "bin" / "python"), "-c", ask],
                env={**head.environment, **DASK.client_variables(machine.spec, head.address)},
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            assert notebook.stdout == "of the project\n", notebook.stderr
            assert await dask.remove(dask.workers[0]) == 0
    finally:
        machine.end_all()
    assert not witness.exists(), witness.read_text()
