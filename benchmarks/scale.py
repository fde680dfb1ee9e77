"""Watch caches at size: how long their first sync takes against a bare download of the same pages, and what memory they need.

    python -m benchmarks.scale [--nodes 500] [--pods 15000] [--churn 0]

Starts an embedded cluster with a population of that size, in a process of its own. This process then downloads all pods and nodes in
pages and throws them away, twice, and lets the reflectors of a web process do their first sync into their stores.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import psutil

from benchmarks.embedded import process
from grid.kube.credentials import Source
from grid.kube.http import HttpKubeApi
from grid.kube.objects import Node, Pod
from grid.kube.resources import NODES, PODS
from grid.labels import KEYS
from grid.sandbox.client import Client
from grid.watch.hub import Hub
from grid.watch.reflector import Feed, Reflector
from grid.watch.store import Store

ROOT = Path(__file__).parents[1]
_LONGEST_FILL_SECONDS = 600


class _More(msgspec.Struct):
    token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _More


async def download(api: HttpKubeApi) -> int:
    """Bytes of all pages of pods and nodes, of which only the continue tokens are read."""
    size = 0
    for resource in (PODS, NODES):
        token = "first"
        while token:
            page = await api.list_page(resource, continue_token="" if token == "first" else token)
            size += len(page)
            token = msgspec.json.decode(page, type=_Page).metadata.token
    return size


async def first_sync(api: HttpKubeApi) -> tuple[Store[Pod], Store[Node]]:
    """The stores of pods and nodes, as soon as both are complete."""
    pods: Store[Pod] = Store(
        "pods",
        indexes={
            "node": lambda pod: pod.spec.node_name,
            "execution": lambda pod: pod.metadata.labels.get(KEYS.execution, ""),
        },
    )
    nodes: Store[Node] = Store("nodes")
    hub = Hub()
    reflectors = (Reflector(api, Feed(PODS, Pod), pods, hub), Reflector(api, Feed(NODES, Node), nodes, hub))
    tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
    while not all(store.freshness(time.monotonic()).synced for store in (pods, nodes)):  # noqa: ASYNC110  no event of it
        await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return pods, nodes


async def timed(work: Callable[[], Awaitable[object]]) -> tuple[float, object]:
    began = time.perf_counter()
    result = await work()
    return time.perf_counter() - began, result


def started(kubeconfig: Path, cluster: "subprocess.Popen[bytes]", log: Path) -> None:
    while not kubeconfig.exists():
        assert cluster.poll() is None, log.read_text()
        time.sleep(0.1)


async def filled(kubeconfig: Path, pods: int) -> None:
    deadline = time.monotonic() + _LONGEST_FILL_SECONDS
    async with Client.from_kubeconfig(kubeconfig) as client:
        while (await client.get("/sandbox/population"))["pods"] < pods * 0.99:
            assert time.monotonic() < deadline, "the population does not stand"
            await asyncio.sleep(0.5)


async def measure(kubeconfig: Path, options: argparse.Namespace, sandbox: int) -> None:
    await filled(kubeconfig, options.pods)
    api = HttpKubeApi(Source(str(kubeconfig)))
    try:
        bare = [await timed(lambda: download(api)) for _ in range(2)]
        before = psutil.Process().memory_info().rss
        seconds, stores = await timed(lambda: first_sync(api))
        held = psutil.Process().memory_info().rss - before
    finally:
        await api.close()
    fastest, size = min(took for took, _ in bare), bare[0][1]
    assert isinstance(size, int) and isinstance(stores, tuple)
    print(
        f"{options.nodes} nodes, {options.pods} pods, {options.churn:g} changes a second, {size / 2**20:.0f} MiB in pages"
    )
    print(f"bare download, the faster of two   {fastest:7.1f} s   1.0 x")
    print(f"first sync of the watch caches     {seconds:7.1f} s   {seconds / fastest:.1f} x")
    print(f"memory of the caches               {held / 2**20:7.0f} MiB   {held / 1024 / options.pods:.1f} KiB a pod")
    print(f"memory of the embedded cluster     {psutil.Process(sandbox).memory_info().rss / 2**20:7.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=15_000)
    parser.add_argument("--churn", type=float, default=0.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compute-grid-bench-") as name:
        folder = Path(name)
        command = [sys.executable, str(ROOT / "manage.py"), "sandbox", "--data", str(folder / "data"), "--simulated"]
        command += ["--port=0", f"--nodes={options.nodes}", f"--pods={options.pods}", f"--churn={options.churn}"]
        environment = {**os.environ, "GRID_DEMO": "1", "GRID_VAR": str(folder / "var")}
        with process(command, log=folder / "sandbox.log", env=environment) as cluster:
            kubeconfig = folder / "data" / "kubeconfig"
            started(kubeconfig, cluster, folder / "sandbox.log")
            asyncio.run(measure(kubeconfig, options, cluster.pid))


if __name__ == "__main__":
    main()
