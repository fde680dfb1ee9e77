"""What the first request of a list costs that nobody has open, by filter: the CPU of its filling, and when the page is answered.

    .venv/bin/python -m benchmarks.coldlists [PODS ...] [--members 1001] [--sockets 50]

Everything happens in this process: the page is asked for as an operator through the whole of Django but without a network, and then the
list is waited for as its websocket does. One pod in twenty has been restarted, so its status has to be explained. Times are of the clock,
but the filling's, which is the CPU of the event loop's thread.

With `--members` each pod is an execution of its own, all in a project of so many. Who comes first is an operator, then a member: right
after a start, and 31 seconds after the last visitor; with the rows in the first paint. Then so many sockets open at once beside cold lists,
each with a list of its own, while a hundred pods a second change.
"""

import argparse
import asyncio
import gc
import time
from dataclasses import replace
from datetime import timedelta
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
_IDLE_SECONDS = 31.0
_CHANGES_A_SECOND = 100


def main(options: argparse.Namespace) -> None:
    for pods in options.pods:
        asyncio.run(who_comes_first(pods, options) if options.members else measured(pods))


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


async def who_comes_first(pods: int, options: argparse.Namespace) -> None:
    from asgiref.sync import sync_to_async

    from dashboard.executions.pages.executions import EXECUTIONS as PAGE
    from tests.support.runtime import using_runtime

    people = {"operator": await sync_to_async(operator)(), "member": await sync_to_async(member)()}
    runtime = one_project(pods, {people["member"][1].id, *range(1_000_000, 999_999 + options.members)})
    gc.collect()
    gc.freeze()  # as the web process does
    print(f"{pods:,} pods, each an execution of its own, in a project of {options.members:,} members; ms")
    print(f"{'':32}{'first byte':>11}{'its rows':>9}{'whole after':>12}{'CPU':>7}")
    with using_runtime(runtime):
        await people["operator"][0].get("/account/", headers=_HEADERS)  # imports and templates
        for name, (client, viewer) in people.items():
            for state in ("after a start", f"after {_IDLE_SECONDS:.0f} s"):
                if state == "after a start":
                    PAGE._lists = None
                else:
                    await asyncio.sleep(_IDLE_SECONDS)
                began, cpu = time.perf_counter(), time.thread_time()
                answer = await client.get("/executions/?sort=age")
                first = time.perf_counter() - began
                assert answer.status_code == 200, answer.status_code
                await PAGE.read(runtime, viewer, PAGE.view(query_dict({})))
                whole, cpu = time.perf_counter() - began, time.thread_time() - cpu
                rows = answer.content.decode().count('id="row-')
                times = f"{1000 * first:>11.0f}{rows:>9}{1000 * whole:>12.0f}{1000 * cpu:>7.0f}"
                print(f"{name + ', ' + state:32}{times}", flush=True)
        PAGE._lists = None
        if options.sockets:
            await many_sockets(runtime, people["member"][1].id, options.sockets)


async def many_sockets(runtime: Any, member_id: int, sockets: int) -> None:
    """Print how long the loop was not free, at most, while so many lists are filled and followed."""
    from benchmarks.pages import watch_the_loop
    from dashboard.executions.pages.executions import EXECUTIONS as PAGE
    from dashboard.shell.access import Role, Viewer
    from dashboard.shell.fragments import preload
    from dashboard.shell.pages.feed import Feeds
    from grid.runtime.garbage import set_aside

    preload()
    collecting, collected = asyncio.create_task(set_aside(lambda: True)), [0.0, 0.0]  # as the web process does
    await asyncio.sleep(2)

    def note(phase: str, _: object) -> None:
        collected[0] = time.thread_time() if phase == "start" else collected[0]
        collected[1] = max(collected[1], time.thread_time() - collected[0])

    gc.callbacks.append(note)
    feeds, longest, began = Feeds(), [0.0], time.perf_counter()
    others = [collecting, asyncio.create_task(watch_the_loop(longest)), asyncio.create_task(changing(runtime))]
    viewers = [Viewer(member_id, "mia", Role.PRACTITIONER)] + [
        Viewer(1_000_000 + number, "m", Role.PRACTITIONER) for number in range(sockets // 2)
    ]

    async def opened(number: int) -> float:
        is_member = number < sockets // 2
        viewer = viewers[number] if is_member else Viewer(1, "olga", Role.OPERATOR)
        view = PAGE.view(query_dict({} if is_member else {"text": f"work {number}"}))
        with feeds.joined(PAGE, runtime, viewer, view) as feed:
            await feed.after(0)
            await feed.message(0, feed.latest)
            took = time.perf_counter() - began
            await asyncio.sleep(max(0.0, began + 20 - time.perf_counter()))
        return took

    took = sorted(await asyncio.gather(*map(opened, range(sockets))))
    for task in others:
        task.cancel()
    gc.callbacks.remove(note)
    print(
        f"{sockets} sockets opening: first after {took[0]:.2f} s, last {took[-1]:.2f} s; "
        f"longest wait {1000 * longest[0]:.0f} ms, longest collection {1000 * collected[1]:.0f} ms, CPU"
    )


async def changing(runtime: Any) -> None:
    """Change one pod after the other, for ever."""
    for number, pod in enumerate(list(runtime.pods.values()) * 10):
        status = msgspec.structs.replace(pod.status.container_statuses[0], restart_count=number + 4)
        runtime.pods.apply(
            msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, container_statuses=(status,)))
        )
        await asyncio.sleep(1 / _CHANGES_A_SECOND)


def one_project(pods: int, members: set[int]) -> Any:
    """Return a runtime in which each pod is an execution of a member of one project, requested a second after the one before."""
    from grid.kube.objects import Node, Pod
    from grid.models.dataplane import LOCAL
    from grid.runtime import new_runtime
    from tests.executions.executing import ROW, pod_of
    from tests.support import builders
    from tests.support.builders import MOMENT, decode
    from tests.support.cluster import FakeCluster
    from tests.support.runtime import become

    runtime, owners = new_runtime({LOCAL: FakeCluster()}), sorted(members)
    roles = dict.fromkeys(owners, "contributor")
    rows = []
    for number in range(pods):
        id, at = f"e{number:09}", MOMENT + timedelta(seconds=number)
        owner = owners[number % len(owners)]
        who: dict[str, Any] = {"owner_id": owner, "owner_username": f"user-{owner}", "project_roles": roles}
        times: dict[str, Any] = {"requested_at": at, "state_since": at, "started_at": at}
        rows.append(replace(ROW, id=id, kind="workspace", title=f"Work {number}", state="running", **who, **times))
        pod = decode(pod_of(id, name=f"workspace-{id}", node=f"n{number // 30}", phase="Running", ready=True), Pod)
        runtime.pods.apply(
            msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, creation_timestamp=at))
        )
    become(runtime.nodes, (decode(builders.node(f"n{place}"), Node) for place in range(pods // 30 + 1)))
    runtime.executions.replace(rows)
    return runtime


def member() -> tuple[Any, Any]:
    from django.test import AsyncClient

    from dashboard.shell.access import viewer_of
    from grid.models import User

    user = User.objects.get_or_create(username="mia")[0]
    client = AsyncClient()
    client.force_login(user)
    return client, viewer_of(user)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("pods", nargs="*", type=int, default=[30_000, 150_000])
    parser.add_argument("--members", type=int, default=0, help="of the project that all executions are in")
    parser.add_argument("--sockets", type=int, default=50)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parsed()
    in_database(lambda: main(arguments))
