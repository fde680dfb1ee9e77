"""200 clusters asked for at once.

    python -m benchmarks.clusters [--clusters 200] [--workers 3] [--rounds 2]

Containers are only simulated (`benchmarks.embedded`), so what is measured is the controllers and the API server, and no framework
answers when our controller asks. Ours is the real process (`manage.py controller`) with a SQLite file; each cluster is requested
with `grid.executions.request.submit`. Between rounds everything is deleted.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async

from benchmarks.database import in_database
from benchmarks.embedded import Request, Spent, client, embedded, process, requests
from grid.sandbox.client import PODS, Client, Mirror, Object, condition_of

NAMESPACE = "compute-grid"
OURS = "compute-grid"  # its User-Agent
WORKERS = "app.kubernetes.io/component=worker"
PER_USER = 5
STEADY_SECONDS = 15.0
LONGEST_SECONDS = 900.0
PODS_PER_NODE = 100


@dataclass(frozen=True, slots=True)
class Round:
    """What the controller did with all clusters."""

    name: str
    asked: float  # seconds until everything was asked for
    created: float  # until the last worker pod existed
    ready: float  # until the last worker was ready
    settled: float  # until the last cluster was said to be running
    start: Spent  # of the controller, before anything was asked
    end: Spent
    steady_cpu: float  # CPU seconds a minute afterwards, when nothing changes
    requests: Counter[Request]
    steady_requests: Counter[Request]
    problems: Counter[str]


class Pods:
    """When the worker pods came to be and became ready, as a watch tells it."""

    def __init__(self, client: Client, namespace: str, selector: str) -> None:
        self.mirror = Mirror(client, PODS, namespace=namespace, label_selector=selector)
        self.mirror.subscribe(self._changed)
        self._created: dict[str, float] = {}
        self._ready: dict[str, float] = {}

    def _changed(self, _: Object | None, pod: Object | None) -> None:
        if pod is None:
            return
        now, uid = time.perf_counter(), pod["metadata"]["uid"]
        self._created.setdefault(uid, now)
        if (condition_of(pod, "Ready") or {}).get("status") == "True":
            self._ready.setdefault(uid, now)

    def created(self, expected: int) -> float | None:
        return sorted(self._created.values())[expected - 1] if len(self._created) >= expected else None

    def ready(self, expected: int) -> float | None:
        return sorted(self._ready.values())[expected - 1] if len(self._ready) >= expected else None


@asynccontextmanager
async def followed(pods: Pods) -> AsyncIterator[None]:
    task = asyncio.create_task(pods.mirror.run())
    await pods.mirror.synced()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], Coroutine[Any, Any, bool]], what: str) -> float:
    """The moment at which it was so."""
    deadline = time.perf_counter() + LONGEST_SECONDS
    while not await condition():
        assert time.perf_counter() < deadline, f"never: {what}"
        await asyncio.sleep(0.25)
    return time.perf_counter()


@dataclass(frozen=True, slots=True)
class Bench:
    folder: Path
    kubeconfig: Path
    client: Client
    clusters: int
    workers: int

    async def measure(
        self,
        name: str,
        agent: str,
        pid: int,
        pods: Pods,
        ask: Callable[[], Coroutine[Any, Any, None]],
        settled: Callable[[], Coroutine[Any, Any, bool]],
        log: Path,
    ) -> Round:
        """One round, from the first request until nothing changes any more."""
        expected = self.clusters * self.workers
        async with followed(pods):
            start, before = Spent.of(pid), await requests(self.kubeconfig)
            began = time.perf_counter()
            await ask()
            asked = time.perf_counter()

            async def all_ready() -> bool:
                return pods.ready(expected) is not None

            await until(all_ready, f"{expected} workers of {name} are ready")
            running = await until(settled, f"all clusters of {name} run")
            end, after = Spent.of(pid), await requests(self.kubeconfig)
            await asyncio.sleep(STEADY_SECONDS)
            later, last = Spent.of(pid), await requests(self.kubeconfig)
        made, ready = pods.created(expected), pods.ready(expected)
        assert made is not None and ready is not None
        measured = Round(
            name,
            asked - began,
            made - began,
            ready - began,
            running - began,
            start,
            Spent(end.cpu_seconds, later.peak_mib),
            (later.cpu_seconds - end.cpu_seconds) * 60 / STEADY_SECONDS,
            Counter({each: count for each, count in (after - before).items() if each.client == agent}),
            Counter({each: count for each, count in (last - after).items() if each.client == agent}),
            problems_in(log),
        )
        report(measured, self.clusters, self.workers)
        return measured

    async def has_begun(self, agent: str, resources: Sequence[str], before: Counter[Request]) -> bool:
        now = await requests(self.kubeconfig)
        watches = [Request(agent, "WATCH", resource) for resource in resources]
        return all(now[watch] > before[watch] for watch in watches)

    async def is_empty(self, namespace: str) -> bool:
        return not await self.client.list(PODS.path(namespace))

    async def ours(self, name: str) -> Round:
        from grid.executions.stopping import request_stop
        from grid.models import Execution

        log, before = self.folder / f"{name}-{time.monotonic_ns()}.log", await requests(self.kubeconfig)
        with process([sys.executable, "manage.py", "controller"], log=log) as controller:
            await until(
                lambda: self.has_begun(OURS, ["pods", "horizontalpodautoscalers"], before), "our controller works"
            )
            ids: list[str] = []

            async def ask() -> None:
                ids.extend(await sync_to_async(launch)(self.clusters, self.workers))

            async def all_run() -> bool:
                return await Execution.objects.filter(pk__in=ids, state="running").acount() == len(ids)

            pods = Pods(self.client, NAMESPACE, WORKERS)
            measured = await self.measure(name, OURS, controller.pid, pods, ask, all_run, log)

            async def all_stopped() -> bool:
                return await Execution.objects.filter(pk__in=ids, state="stopped").acount() == len(ids)

            def stop() -> None:
                for execution in Execution.objects.filter(pk__in=ids):
                    request_stop(execution, by="benchmark", now=datetime.now(UTC))

            began = time.perf_counter()
            await sync_to_async(stop)()
            stopped = await until(all_stopped, "all our clusters have stopped") - began
            print(f"  {name}: all stopped after {stopped:.1f} s", flush=True)
            await until(lambda: self.is_empty(NAMESPACE), "our pods are gone")
        return measured


def launch(clusters: int, workers: int, *, on_demand: bool = False) -> list[str]:
    """As the form does, for users who each want some."""
    from grid.executions.launchrequest import ClusterRequest, LaunchRequest
    from grid.executions.request import submit
    from grid.models import Environment, HardwareTier, Membership
    from grid.queue.launches import why_not_launch

    environment, tier = Environment.objects.get(id="dask"), HardwareTier.objects.get(id="tiny")
    owners = list(Membership.objects.filter(role="owner").select_related("project", "user").order_by("project"))
    cluster = ClusterRequest(
        framework="dask",
        environment=environment,
        head_tier=tier,
        tier=tier,
        workers_minimum=workers,
        workers_maximum=workers + 1,
        autoscale=True,
        target_cpu=80,
        target_memory=0,
        on_demand=on_demand,
        local_storage="",
    )
    ids = []
    for number in range(clusters):
        owner = owners[number // PER_USER]
        request = LaunchRequest(owner.user, owner.project, environment, tier, "cluster", f"cluster {number}", cluster)
        ids.append(submit(request, gate=why_not_launch, now=datetime.now(UTC)).pk)
    return ids


def furnish(clusters: int) -> None:
    from grid.models import Environment, HardwareTier, Project, User

    Environment.objects.create(id="dask", name="Dask", image="dask:1", kind="cluster", frameworks={"dask": "2026.8.0"})
    HardwareTier.objects.create(id="tiny", name="Tiny", node_pool="default", cores="250m", memory="256Mi")
    for number in range(-(-clusters // PER_USER)):
        owner = User.objects.create(username=f"user-{number:03}")
        Project.objects.start(id=owner.username, name=owner.username, owner=owner)


def rows() -> Counter[str]:
    """How many there are in each table that launches write to."""
    from django.apps import apps

    counts = {model.__name__: model._default_manager.count() for model in apps.get_app_config("grid").get_models()}
    return Counter({name: count for name, count in counts.items() if count})


def problems_in(log: Path) -> Counter[str]:
    return Counter(_kind_of(line) for line in log.read_text().splitlines() if _is_problem(line))


def _is_problem(line: str) -> bool:
    return " WARNING " in line or " ERROR " in line


def _kind_of(line: str) -> str:
    """A log line without what differs between clusters."""
    words = line.split(maxsplit=2)[-1].split()
    return " ".join(word for word in words if not any(sign in word for sign in "=0123456789"))[:100]


def table(rounds: Sequence[Round], clusters: int) -> None:
    head = ("round", "asked", "created", "ready", "running", "CPU s", "MiB", "CPU s/min after", "requests/cluster")
    print(" | ".join(head))
    for each in rounds:
        cpu = each.end.cpu_seconds - each.start.cpu_seconds
        per = sum(each.requests.values()) / clusters
        times = " | ".join(f"{value:.1f}" for value in (each.asked, each.created, each.ready, each.settled))
        print(f"{each.name} | {times} | {cpu:.1f} | {each.end.peak_mib:.0f} | {each.steady_cpu:.1f} | {per:.1f}")


def report(last: Round, clusters: int, workers: int) -> None:
    load = os.getloadavg()[0]
    print(f"{clusters} clusters of {workers} workers; load {load:.1f}; seconds since the first was asked for")
    table([last], clusters)
    for request, count in last.requests.most_common(25):
        print(f"  {count / clusters:6.2f} {request.verb} {request.resource}")
    steady = ", ".join(f"{count} {each.verb} {each.resource}" for each, count in last.steady_requests.most_common(6))
    print(f"  in {STEADY_SECONDS:.0f} s afterwards: {steady or 'none'}")
    for line, count in last.problems.most_common(8):
        print(f"  warned {count} times: {line}")
    sys.stdout.flush()


async def run(bench: Bench, rounds: int) -> None:
    done = []
    for number in range(1, rounds + 1):
        print(f"round {number} begins at load {os.getloadavg()[0]:.1f}", flush=True)
        done.append(await bench.ours(str(number)))
    table(done, bench.clusters)
    counted = await sync_to_async(rows)()
    print("rows:", ", ".join(f"{count} {name}" for name, count in counted.most_common()))


async def main(arguments: argparse.Namespace, folder: Path, kubeconfig: Path) -> None:
    await sync_to_async(furnish)(arguments.clusters)
    async with client(kubeconfig) as asking:
        bench = Bench(folder, kubeconfig, asking, arguments.clusters, arguments.workers)
        await run(bench, arguments.rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        place = Path(temporary)
        with embedded(place, 1 + given.clusters * (1 + given.workers) // PODS_PER_NODE) as config:
            os.environ["KUBECONFIG"] = str(config)
            in_database(lambda: asyncio.run(main(given, place, config)))
