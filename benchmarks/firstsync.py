"""Watch caches at size: how long their first sync takes against a bare download of the same pages, and what memory they need.

    python -m benchmarks.scale sync [--nodes 500] [--pods 15000] [--churn 0]

This process downloads all pods and nodes in pages and throws them away, twice, and lets the reflectors of a web process do their
first sync into their stores, while the garbage collector rests as it does there.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec
import psutil

from benchmarks.stage import Population, add_size, population
from grid.core.labels import KEYS
from grid.kube.credentials import CredentialSource
from grid.kube.http import HttpKubeApi
from grid.kube.hub import Hub
from grid.kube.objects import Node, Pod
from grid.kube.reflector import ListWatch, Reflector
from grid.kube.resources import NODES, PODS
from grid.kube.store import Store

SetAside = Callable[[Callable[[], bool]], Coroutine[Any, Any, None]]


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


async def first_sync(api: HttpKubeApi, set_aside: SetAside) -> tuple[Store[Pod], Store[Node]]:
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
    reflectors = (Reflector(api, ListWatch(PODS, Pod), pods, hub), Reflector(api, ListWatch(NODES, Node), nodes, hub))
    tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]

    def is_synced() -> bool:
        return all(store.freshness(time.monotonic()).synced for store in (pods, nodes))

    tasks.append(asyncio.create_task(set_aside(is_synced)))
    while not is_synced():  # noqa: ASYNC110  no event of it
        await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return pods, nodes


async def timed(work: Callable[[], Awaitable[object]]) -> tuple[float, object]:
    began = time.perf_counter()
    result = await work()
    return time.perf_counter() - began, result


async def measure(full: Population, options: argparse.Namespace) -> None:
    from grid.runtime.garbage import set_aside  # its neighbours need Django to be set up

    api = HttpKubeApi(CredentialSource(str(full.kubeconfig)))
    try:
        bare = [await timed(lambda: download(api)) for _ in range(2)]
        before = psutil.Process().memory_info().rss
        seconds, stores = await timed(lambda: first_sync(api, set_aside))
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
    print(f"memory of the embedded cluster     {full.cluster.memory_info().rss / 2**20:7.0f} MiB")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_size(parser, nodes=500, pods=15_000)


def main(options: argparse.Namespace) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "grid.settings")
    with population(options) as full:
        os.environ |= {"GRID_DEMO": "1", "GRID_VAR": str(full.folder / "var")}
        import django

        django.setup()
        asyncio.run(measure(full, options))
