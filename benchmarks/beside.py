"""Our watch cache beside the official Python client's informer and watch, and KubeSpawner's reflector: the same pods, the same changes.

    python -m benchmarks.scale beside [--nodes 20] [--pods 500] [--per-second 20] [--changes 300] [--ways ours,informer,watch,kubespawner]
                                      [--kubespawner VENV]

One after the other, each a process of its own on the same cluster; then the restart counts of pods change. From the moment at which a
bare watch of this process has the event until the pod is in the other's memory. KubeSpawner lists everything anew every thirty seconds
at the least, as it is installed; that is in its figures. Without --kubespawner its environment is made first.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.embedded import Spent
from benchmarks.marks import FIRST, STEP, Arrivals, Cluster, connect, percentile, running
from benchmarks.stage import NAMESPACE, ROOT, Population, add_size, population, title

PACKAGE = "jupyterhub-kubespawner==7.1.0"
_TARGETS = 200
_SETTLE_SECONDS = 5.0
_LONGEST_SYNC_SECONDS = 1800.0
_NAMES = {
    "ours": "grid.kube",
    "informer": "official client: SharedInformer",
    "watch": "official client: list and Watch",
    "kubespawner": "KubeSpawner's reflector",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_size(parser)
    parser.add_argument("--per-second", type=float, default=20.0)
    parser.add_argument("--changes", type=int, default=300)
    parser.add_argument("--ways", default=",".join(_NAMES))
    parser.add_argument("--kubespawner", type=Path, help="a virtual environment with jupyterhub-kubespawner")


def main(options: argparse.Namespace) -> None:
    with population(options) as full:
        spawner = options.kubespawner
        if spawner is None and "kubespawner" in options.ways.split(","):
            spawner = install(full.folder / "kubespawner")
        os.environ["DJANGO_SETTINGS_MODULE"] = "grid.settings"
        print(f"{title(options)}; {options.changes} changes, {options.per_second:g} a second")
        print(
            f"{'':34} | {'first sync s':>12} | {'MiB':>7} | {'peak MiB':>8} | {'p50 ms':>8} | {'p95 ms':>8} | {'p99 ms':>8}"
            f" | {'CPU of a change, ms':>19} | seen",
            flush=True,
        )
        for place, way in enumerate(options.ways.split(",")):
            python = spawner / "bin" / "python" if way == "kubespawner" else Path(sys.executable)
            first = FIRST + place * STEP * options.changes
            asyncio.run(measure(full, way, python, first, options))


def install(folder: Path) -> Path:
    """A virtual environment with KubeSpawner in it."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", PACKAGE], check=True)
    return folder


async def measure(full: Population, way: str, python: Path, first: int, options: argparse.Namespace) -> None:
    began = time.perf_counter()
    program = await asyncio.create_subprocess_exec(
        *(str(python), str(ROOT / "benchmarks" / "watchers.py"), way, str(full.kubeconfig), NAMESPACE),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=(full.folder / f"{way}.log").open("wb"),
        env={**os.environ, "PYTHONPATH": str(ROOT) if way == "ours" else ""},
        limit=2**26,
    )
    assert program.stdin is not None and program.stdout is not None
    try:
        async with asyncio.timeout(_LONGEST_SYNC_SECONDS):
            line = await program.stdout.readline()
        assert line == b"synced\n", (full.folder / f"{way}.log").read_text()
        synced = time.perf_counter() - began
        arrivals, cpu = await change_pods(full, program.pid, first, options)
        held, peak = psutil.Process(program.pid).memory_info().rss / 2**20, Spent.of(program.pid).peak_mib
        program.stdin.close()
        report: dict[str, Any] = json.loads(await program.stdout.readline())
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()
    delays = arrivals.delays({int(number): at for number, at in report["seen"].items()}, arrivals.sent)
    shares = " | ".join(f"{percentile(delays, share) * 1000:8.1f}" for share in (0.5, 0.95, 0.99))
    print(
        f"{_NAMES[way]:34} | {synced:12.1f} | {held:7.0f} | {peak:8.0f} | {shares} | {cpu / options.changes * 1000:19.2f}"
        f" | {len(delays)} of {len(arrivals.events)}; holds {report['held']}",
        flush=True,
    )


async def change_pods(full: Population, pid: int, first: int, options: argparse.Namespace) -> tuple[Arrivals, float]:
    """When a bare watch saw each change, and the CPU seconds of that process meanwhile."""
    arrivals = Arrivals()
    server, http = connect(full.kubeconfig)
    cluster = Cluster(server, http, full.kubeconfig)
    async with http:
        pods = await targets(cluster)
        follow = asyncio.create_task(cluster.follow(f"namespaces/{NAMESPACE}/pods", arrivals))
        async with running(follow):
            await asyncio.sleep(_SETTLE_SECONDS)
            before, began = Spent.of(pid).cpu_seconds, time.perf_counter()
            for place in range(options.changes):
                await asyncio.sleep(max(0.0, began + place / options.per_second - time.perf_counter()))
                number = first + STEP * place
                arrivals.sent.add(number)
                await cluster.mark_pod(pods[place % len(pods)], number)
            await asyncio.sleep(_SETTLE_SECONDS)
            assert not follow.done(), "the watch ended"
            return arrivals, Spent.of(pid).cpu_seconds - before


async def targets(cluster: Cluster) -> Sequence[dict[str, Any]]:
    """Some pods whose container runs."""
    url = f"{cluster.server}/api/v1/namespaces/{NAMESPACE}/pods"
    async with cluster.http.get(url, params={"limit": str(5 * _TARGETS)}) as answer:
        items = (await answer.json())["items"]
    running_now = [pod for pod in items if pod["status"].get("phase") == "Running"]
    return random.Random(1).sample(running_now, min(_TARGETS, len(running_now)))
