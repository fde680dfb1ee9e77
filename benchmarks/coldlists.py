"""What the first request of a list costs that nobody has open, by filter: the CPU of its filling, and when the page is answered.

    .venv/bin/python -m benchmarks.coldlists [PODS ...]

Everything happens in this process: the page is asked for as an operator through the whole of Django but without a network, and then the
list is waited for as its websocket does. One pod in twenty has been restarted, so its status has to be explained. Times are of the clock,
but the filling's, which is the CPU of the event loop's thread.
"""

import asyncio
import gc
import sys
import time
from typing import Any
from urllib.parse import urlencode

import msgspec

from benchmarks.database import in_database

EXECUTIONS: tuple[dict[str, str], ...] = (
    {"kind": "app"},  # the first request of all makes the groups, too
    {},
    {"text": "work 77"},
    {"text": "no such thing"},
    {"status": "trouble"},
    {"sort": "-memory"},
    {"cpu": "1"},
    {"age": "1 h"},
)
NODES: tuple[dict[str, str], ...] = ({}, {"text": "n7"}, {"state": "removable"})
RESTARTED_OF = 20
_HEADERS = {"accept-encoding": "gzip"}


def main(sizes: list[int]) -> None:
    for pods in sizes:
        asyncio.run(measured(pods))


async def measured(pods: int) -> None:
    from asgiref.sync import sync_to_async

    from benchmarks.pages import filled
    from dashboard.executions.pages.executions import EXECUTIONS as PAGE
    from dashboard.nodes.pages.infrastructure import INFRASTRUCTURE
    from tests.support.runtime import using_runtime

    runtime, _ = filled(pods)
    for pod in list(runtime.pods.values())[::RESTARTED_OF]:
        status = msgspec.structs.replace(pod.status.container_statuses[0], restart_count=3)
        new_status = msgspec.structs.replace(pod.status, container_statuses=(status,))
        runtime.pods.apply(msgspec.structs.replace(pod, status=new_status))
    gc.collect()
    gc.freeze()  # as the web process does
    client, viewer = await sync_to_async(operator)()
    print(f"{pods:,} pods, {len(list(runtime.executions.values())):,} executions, {len(runtime.nodes):,} nodes; ms")
    print(f"{'':44}{'first byte':>11}{'whole after':>12}{'filling':>9}{'warm':>7}")
    with using_runtime(runtime):
        await client.get("/account/", headers=_HEADERS)  # imports and templates
        pages: tuple[tuple[Any, str, Any], ...] = (
            (PAGE, "/executions/", EXECUTIONS),
            (INFRASTRUCTURE, "/infrastructure/", NODES),
        )
        for page, path, queries in pages:
            for query in queries:
                address, view = f"{path}?{urlencode(query)}", page.view(query_dict(query))
                began, cpu = time.perf_counter(), time.thread_time()
                first = await answered(client, address)
                await page.read(runtime, viewer, view)
                whole, filling = time.perf_counter() - began, time.thread_time() - cpu
                warm = await answered(client, address)
                times = f"{1000 * first:>11.0f}{1000 * whole:>12.0f}{1000 * filling:>9.0f}{1000 * warm:>7.0f}"
                print(f"{address:44}{times}", flush=True)


async def answered(client: Any, address: str) -> float:
    """Return the seconds until the page is answered."""
    began = time.perf_counter()
    answer = await client.get(address, headers=_HEADERS)
    assert answer.status_code == 200, answer.status_code
    return time.perf_counter() - began


def operator() -> tuple[Any, Any]:
    from django.conf import settings
    from django.contrib.auth.models import Group
    from django.test import AsyncClient

    from dashboard.shell.access import viewer_of
    from grid.models import User

    user = User.objects.get_or_create(username="olga")[0]
    user.groups.add(Group.objects.get_or_create(name="operators")[0])
    settings.ALLOWED_HOSTS = ["testserver"]
    client = AsyncClient()
    client.force_login(user)
    return client, viewer_of(user)


def query_dict(query: dict[str, str]) -> Any:
    from django.http import QueryDict

    return QueryDict(urlencode(query))


if __name__ == "__main__":
    in_database(lambda: main([int(argument) for argument in sys.argv[1:]] or [30_000, 150_000]))
