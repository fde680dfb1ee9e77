"""Dask itself, from its own packages: real schedulers and workers on loopback addresses of one machine, as on the embedded cluster."""

import asyncio
import json
import re
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from grid.clusters.frameworks.base import ClusterReport, FrameworkSilent, WorkerPod
from grid.clusters.frameworks.dask import Dask
from grid.executions.spec import ExecutionSpec
from grid.sandbox.imagestore import ImageStore
from tests.clusters.cluster_specs import HEAD_TIER, cluster, spec
from tests.clusters.frameworks.spark_processes import Container, Machine
from tests.end_to_end.grid import IMAGES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
DASK = Dask()
PATIENCE = 60.0
# What a user's notebook does: no address anywhere. It goes on until it is told to come to an end; every task leaves a line each time
# that it is computed, and all results are held by the workers until then.
COMPUTATION = """
import json, sys, time
from pathlib import Path
from distributed import Client, wait

notes, enough, seconds, batch = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
endless = len(sys.argv) > 5

def note(name, number):
    with notes.open("a") as file:
        file.write(f"{name} {number}\\n")

def chunk(number):
    note("chunk", number)
    return bytes([number]) * 1_000_000

def work(data, number):
    time.sleep(seconds)
    while endless and not enough.exists():
        time.sleep(0.05)
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
        last: object = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        last = report = await self.ask()
                        if condition(report):
                            return report
                    except FrameworkSilent as silence:
                        last = silence
                    await asyncio.sleep(0.1)
        except TimeoutError:
            logs = "\n".join(f"{container.name}:\n{container.text}" for container in (self.head, *self.workers))
            raise AssertionError(f"waited in vain until {what}; said at last: {last}\n{logs}") from None

    def compute(self, *, seconds: float, batch: int = 40, endless: bool = False) -> "Computation":
        """The notebook of the workspace that it is attached to; `seconds` is how long each task takes, unless it is to take until
        the end."""
        notes, enough = self.machine.folder / "notes", self.machine.folder / "enough"
        python = str(self.machine.image / "bin" / "python")
        program = subprocess.Popen(
            [python, "-c", COMPUTATION, str(notes), str(enough), str(seconds), str(batch), *["endless"] * endless],
            env={**self.head.environment, **DASK.client_variables(self.spec, self.head.address)},
            cwd=self.machine.folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.computation = Computation(program, notes, enough, batch)
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
    batch: int

    async def line(self) -> str:
        assert self.program.stdout is not None
        return (await asyncio.to_thread(self.program.stdout.readline)).strip()

    async def ends(self) -> set[int]:
        """Lets it come to its end, which is right and without a loss; says how often tasks were computed."""
        assert self.program.poll() is None, "it must not have ended by itself"
        self.enough.touch()
        result = json.loads(await self.line())
        numbers = range(result["tasks"])
        assert result["total"] == sum(1_000_000 * (number % self.batch) + number for number in numbers)
        assert result["lost"] == []
        assert await asyncio.to_thread(self.program.wait, PATIENCE) == 0
        times = Counter(self.notes.read_text().splitlines())
        assert len(times) == self.batch + len(numbers)
        return set(times.values())

    def close(self) -> None:
        if self.program.poll() is None:
            self.program.kill()
        self.program.communicate()


@pytest.fixture
async def dask(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[DaskCluster]:
    image, _ = await ImageStore(IMAGES).pull("compute-grid/dask:2026.8")
    # Served by path, which asks more of Dask than an origin of its own.
    address = "https://workspaces.test/w/abc/"
    of = spec(of=cluster(drain_seconds=getattr(request, "param", 30)), tier=HEAD_TIER, address=address)
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
    computation = dask.compute(seconds=0.2)
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


@pytest.mark.parametrize("dask", [1], indirect=True)
async def test_task_longer_than_the_drain_is_computed_again_elsewhere(dask: DaskCluster) -> None:
    dask.add_workers(2)
    await dask.until(lambda report: len(report.workers) == 2, "two workers have joined")
    computation = dask.compute(seconds=0, batch=6, endless=True)
    assert await computation.line() == "begun"
    await dask.until(lambda report: all(w.tasks for w in report.workers.values()), "both have work")
    assert await dask.remove(dask.workers[1]) == 1
    await computation.ends()


async def test_only_worker_hands_its_results_to_its_replacement(dask: DaskCluster) -> None:
    dask.add_workers(1)
    await dask.until(lambda report: len(report.workers) == 1, "the worker has joined")
    computation = dask.compute(seconds=0.1)
    assert await computation.line() == "begun"
    removal = asyncio.create_task(dask.remove(dask.workers[0]))
    dask.add_workers(1)
    assert await removal == 0
    assert (await dask.ask()).workers.keys() == {dask.workers[1].name}
    assert await computation.ends() == {1}


async def test_ui_and_its_resources_lie_under_the_cluster_path(dask: DaskCluster) -> None:
    await dask.until(lambda report: True, "the head answers")
    base = f"http://{dask.head.address}:{DASK.ui_port}"
    patient = aiohttp.ClientTimeout(total=PATIENCE)  # Dask draws its first page for seconds
    async with dask.http.get(f"{base}/w/abc/status", timeout=patient) as answer:
        page = await answer.text()
    assert answer.status == 200
    elsewhere = ("http", "data:", "javascript:")
    linked = {link for link in re.findall(r'(?:src|href)="([^"#]+)"', page) if not link.startswith(elsewhere)}
    assert linked
    for link in linked:
        async with dask.http.get(answer.url.join(URL(link)), timeout=patient) as part:
            assert (part.status, part.url.path.startswith("/w/abc/")) == (200, True), link
    async with dask.http.get(f"{base}/health") as outside:
        assert outside.status == 404, "nothing is served beside the cluster's path"
    token = re.findall(r'"token":"([^"]+)"', page)[0]
    async with dask.http.ws_connect(
        f"{base}/w/abc/status/ws", protocols=("bokeh", token), headers={"Origin": "https://grid.example"}
    ) as live:
        assert "ACK" in (await live.receive_str(timeout=PATIENCE)), "the page stays live behind another name"
