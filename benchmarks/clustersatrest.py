"""What on-demand clusters cost the controller while nothing happens: all run, their heads answer, and nobody asks for anything.

    TMPDIR=/dev/shm python -m benchmarks.clustersatrest [CLUSTERS] [SECONDS] [--on-demand] [--profile]

The real controller with its change feed, Python's garbage collector as the server has it, a SQLite file, a Kubernetes cluster in memory
whose answers are part of what is measured. The heads are Dask's as far as their report goes: one other process answers for all of them
over HTTP, each at an address of its own (Linux: 127.77.0.0/16, port 8787), and its CPU is not counted; that of asking it is. Reported: the
CPU of this process as a share of one core.
"""

import argparse
import asyncio
import copy
import cProfile
import json
import os
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web
from asgiref.sync import sync_to_async

from benchmarks.clusters import furnish, launch
from benchmarks.database import in_database
from benchmarks.embedded import process

if TYPE_CHECKING:
    from grid.controller.controller import Controller
    from tests.controller.world import World
    from tests.support.cluster import FakeCluster

WORKERS = 3
NAMESPACE = "compute-grid"
DASK_PORT = 8787
SETTLED_SECONDS = 30.0  # after all have answered: what the first answers change is written, and noticed


def main(options: argparse.Namespace) -> None:
    furnish(1)
    (first,) = launch(1, WORKERS, on_demand=options.on_demand)
    asyncio.run(measure(first, options, Path(os.environ["GRID_VAR"])))


async def measure(first: str, options: argparse.Namespace, folder: Path) -> None:
    from grid.controller.controller import Controller
    from grid.database.changefeed import CONTROLLER_PERIOD_SECONDS, feed_of
    from grid.database.seam import Databases
    from grid.database.threads import background
    from grid.executions.context import LaunchTarget
    from grid.models import ClusterSample
    from grid.models.dataplane import LOCAL
    from grid.runtime.garbage import set_aside
    from tests.controller.world import World

    calls: Counter[str] = Counter()

    async def counted(work: Any, /, *args: Any, **kwargs: Any) -> Any:
        calls[work.__name__] += 1
        return await background.run(work, *args, **kwargs)

    world, target, feed = (
        World(now=datetime.now(UTC)),
        LaunchTarget(LOCAL, NAMESPACE, lambda id: "token", front_key=str),
        feed_of(period=CONTROLLER_PERIOD_SECONDS),
    )
    await to_running(world, Controller(world.cluster, target))
    await sync_to_async(copy_rows)(first, options.clusters)
    answers = copy_objects(world.cluster, first, options.clusters)
    (folder / "answers.json").write_text(json.dumps(answers))
    command = [sys.executable, "-m", "benchmarks.clustersatrest", "--heads", str(folder / "answers.json")]
    with process(command, log=folder / "heads.log"):
        await asyncio.sleep(5)
        controller = Controller(world.cluster, target, databases=Databases.shared(counted))
        assert feed is not None, "a file has a feed"
        controller.listen_to(feed)
        tasks = [asyncio.create_task(controller.run()), asyncio.create_task(set_aside(lambda: True))]
        while reported_workers(world.cluster) < options.clusters * WORKERS or not controller.idle:  # noqa: ASYNC110  no event of it
            await asyncio.sleep(1)
        await asyncio.sleep(SETTLED_SECONDS)
        calls.clear()
        requests, samples = world.cluster.count(), await ClusterSample.objects.acount()
        profile = cProfile.Profile(time.thread_time)  # other programs would be in the time of the clock
        began, cpu = time.perf_counter(), time.process_time()
        if options.profile:
            profile.enable()
        await asyncio.sleep(options.seconds)
        profile.disable()
        took, used = time.perf_counter() - began, time.process_time() - cpu
        samples = await ClusterSample.objects.acount() - samples
        minute = 60 / took
        print(f"{options.clusters} clusters at rest for {took:.0f} s, load {os.getloadavg()[0]:.1f}: ", end="")
        print(f"{100 * used / took:.2f} % of a core; a minute: {samples * minute:.0f} samples, ", end="")
        print(f"{(world.cluster.count() - requests) * minute:.0f} requests to the API server, calls of the database:")
        print(", ".join(f"{name} {count * minute:.0f}" for name, count in calls.most_common()))
        if options.profile:
            profile.print_stats("tottime")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def to_running(world: "World", controller: "Controller") -> None:
    """Let the first cluster run, its pods made by the controllers of the cluster in memory."""
    from grid.models import Execution

    while not await Execution.objects.filter(state="running").aexists():
        await world.step(controller)
        world.behave()


def copy_rows(first: str, count: int) -> None:
    """Make as many running clusters as asked for, all like the first."""
    from grid.models import Execution

    row = Execution.objects.get(pk=first)
    text = json.dumps(row.spec)
    rows = []
    for number in range(1, count):
        row.pk, row.spec = _id(number), json.loads(text.replace(first, _id(number)))
        rows.append(copy.copy(row))
    Execution.objects.bulk_create(rows)


def copy_objects(cluster: "FakeCluster", first: str, count: int) -> dict[str, Any]:
    """Make the objects of these clusters, and return what each head answers, by its address: its workers have joined and are idle."""
    from grid.core.labels import APP_COMPONENT, HEAD
    from grid.kube import resources
    from grid.kube.resources import PODS, Resource

    known = [value for value in vars(resources).values() if isinstance(value, Resource)]
    objects = {resource: json.dumps(cluster.objects(resource)) for resource in known}
    uids = [obj["metadata"]["uid"] for resource in known for obj in cluster.objects(resource)]
    answers: dict[str, Any] = {}
    for number in range(count):
        id = first if number == 0 else _id(number)
        address = f"127.77.{number // 250}.{number % 250 + 1}"
        workers: dict[str, Any] = {}
        for resource, text in objects.items():
            for uid in uids if number else ():
                text = text.replace(uid, f"{number:08x}{uid[8:]}")
            for obj in json.loads(text.replace(first, id)):
                meta = obj["metadata"]
                if id not in json.dumps(obj):
                    continue  # not of the cluster
                if resource == PODS:
                    is_head = meta["labels"][APP_COMPONENT] == HEAD
                    obj["status"]["podIP"] = address if is_head else "127.78.0.1"
                    if not is_head:
                        workers[meta["name"]] = {"tasks": 0, "bytes_held": 0}
                cluster.put(resource, obj)
        answers[address] = {"workers": workers, "pending_tasks": 0, "wanted_workers": 0}
    return answers


def _id(number: int) -> str:
    return f"copy{number:04}"


def reported_workers(cluster: "FakeCluster") -> int:
    """How many workers have been told what their head says of them."""
    from grid.core.labels import KEYS
    from grid.kube.resources import PODS

    return sum(KEYS.worker_report in pod["metadata"].get("annotations", {}) for pod in cluster.objects(PODS))


def serve_heads(answers: dict[str, Any]) -> None:
    """Answer for all heads, until terminated."""

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        return web.json_response(answers[request.transport.get_extra_info("sockname")[0]])

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    web.run_app(app, host=list(answers), port=DASK_PORT, access_log=None, print=None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clusters", type=int, nargs="?", default=200)
    parser.add_argument("seconds", type=float, nargs="?", default=60.0)
    parser.add_argument("--on-demand", action="store_true", help="their autoscalers follow the frameworks too")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--heads", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.heads:
        serve_heads(json.loads(given.heads.read_text()))
    else:
        in_database(lambda: main(given))
