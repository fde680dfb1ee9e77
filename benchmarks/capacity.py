"""A whole installation under the load of many people: who has open pages, who visits, who launches and stops, and pods that change.

    .venv/bin/python -m tests.support.postgresql bash -c \
        'DATABASE_URL=$TEST_DATABASE_URL .venv/bin/python -m benchmarks.capacity [--share 0.25] [--webs 1] [--minutes 3]'

At `--share 1` it is 10,000 people with an account in 500 projects, 6,000 running executions of as many of them, 2,000 open pages that are
told of changes, 100 of them operators' of everything, 1,000 visits of other pages a minute, 60 launches a minute, each stopped when it
runs, and 20 changes of pods a second; another share is that part of each. The cluster is an embedded one with simulated executions;
the web processes share a port, and a real controller admits, creates and ends. Reported: what each process takes of a core,
and what people wait for. The clients and the cluster run on the same cores and are told apart.
"""

import argparse
import asyncio
import random
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import psutil

from benchmarks.atrest import pods_of
from benchmarks.embedded import process
from benchmarks.formlaunches import launched, newcomers, opened
from benchmarks.marks import Arrivals, Cluster, connect, percentile, running as follow_running, say_head
from benchmarks.screens import Screen, change_rows, opened as opened_screens, say
from benchmarks.stage import MANAGE, NAMESPACE, Stage, cookie, log_in, people, stage, title
from grid.core.labels import SIMULATED
from grid.sandbox.client import Client

if TYPE_CHECKING:
    from grid.models import Execution, User

_PEOPLE, _RUNNING, _SCREENS, _OPERATORS = 10_000, 6_000, 2_000, 100
_MEMBERS = 20  # of a project
_NODES = 100  # of 110 pods each
_LAUNCHING = 500  # people, of whom some launch now and then
_VISITS, _LAUNCHES = 1_000, 60  # a minute
_CHANGES = 20  # a second
_PAGES = ("/", "/executions/", "/launch/", "/executions/{id}/", "/usage/", "/queue/")
_CSRF = "csrfmiddlewaretoken"
_RUNNING_STATE = re.compile(r'role="status">Running')
_LONGEST_START_SECONDS = 120.0
_PUT_AT_ONCE = 16


def inhabited(number: int) -> "list[User]":
    """So many people, in projects of twenty."""
    from grid.configuration.general import MAXIMUM_EXECUTIONS_PER_USER
    from grid.models import ConfigRecord, Membership, Project, User

    made = User.objects.bulk_create((User(username=f"p-{n}", password="!") for n in range(number)), batch_size=2000)
    projects = [Project(id=f"project-{n}", name=f"Project {n}") for n in range(-(-number // _MEMBERS))]
    Project.objects.bulk_create(projects)
    roles = (Membership.Role.OWNER, *[Membership.Role.CONTRIBUTOR] * (_MEMBERS - 1))
    memberships = (
        Membership(project=projects[n // _MEMBERS], user=user, role=roles[n % _MEMBERS]) for n, user in enumerate(made)
    )
    Membership.objects.bulk_create(memberships, batch_size=2000)
    ConfigRecord.objects.update_or_create(key=MAXIMUM_EXECUTIONS_PER_USER.key, defaults={"value": "100"})
    return made


def running(owners: "Sequence[User]", nodes: Sequence[str]) -> "list[Execution]":
    """One running workspace for each of them."""
    from django.utils import timezone

    from grid.executions.launchsettings import launch_settings
    from grid.executions.progress import CREATED
    from grid.executions.spec import serialize_spec
    from grid.models import Environment, Execution, HardwareTier, State

    environment, tier = Environment.objects.get(id="bench"), HardwareTier.objects.get(id="bench")
    central, now, rows = launch_settings(), timezone.now(), []
    times = dict.fromkeys(("requested_at", "state_since", "slots_reserved_at", "started_at"), now)
    for n, owner in enumerate(owners):
        things = {"project_id": f"project-{n // _MEMBERS}", "environment": environment, "tier": tier}
        row = Execution(kind="workspace", owner=owner, node_name=nodes[n % len(nodes)], **things, **times)
        row.slots, row.state, row.reason = 1, State.RUNNING, CREATED
        serialize_spec(row, central=central)
        rows.append(row)
    return Execution.objects.bulk_create(rows, batch_size=1000)


async def put(kubeconfig: Path, pods: Iterable[dict[str, Any]]) -> None:
    """Put pods into the cluster, on nodes that nobody serves."""
    at_once, path = asyncio.Semaphore(_PUT_AT_ONCE), f"/api/v1/namespaces/{NAMESPACE}/pods"
    async with Client.from_kubeconfig(kubeconfig) as client:

        async def put_one(pod: dict[str, Any]) -> None:
            del pod["metadata"]["ownerReferences"]  # to what is not there, so the cluster would collect it
            async with at_once:
                made = await client.create(path, pod)
                await client.update(f"{path}/{made['metadata']['name']}/status", made | {"status": pod["status"]})

        await asyncio.gather(*map(put_one, pods))


async def node_names(kubeconfig: Path) -> list[str]:
    async with Client.from_kubeconfig(kubeconfig) as client:
        return [node["metadata"]["name"] for node in await client.list("/api/v1/nodes", label_selector=SIMULATED)]


class Visitors:
    """Those who come, read and launch, with what each of them waited for."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http, self._url = http, url
        self.seconds: dict[str, list[float]] = {}

    async def at_rate(self, a_minute: float, until: float, visit: Callable[[], Coroutine[None, None, None]]) -> None:
        """Begin one visit after the other, whether or not those before have ended."""
        began, number = time.monotonic(), 0
        async with asyncio.TaskGroup() as visits:
            while time.monotonic() < until:
                visits.create_task(visit())
                number += 1
                await asyncio.sleep(max(0.0, began + number * 60 / a_minute - time.monotonic()))

    async def page(self, key: str, path: str, name: str) -> str:
        began = time.perf_counter()
        async with self._http.get(path, headers={"Cookie": cookie(key)}) as answer:
            text = await answer.text()
            assert answer.status == 200, (path, answer.status, text[:2000])
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)
        return text

    async def launch(self, key: str) -> None:
        """One launch through its form; it is stopped when it runs."""
        form = await opened(self._http, key)
        began = time.perf_counter()
        waited, path = await launched(self._http, key, form, self._url)
        self.seconds.setdefault("a launch is taken", []).append(waited)
        page = ""
        while not _RUNNING_STATE.search(page):
            assert time.perf_counter() - began < _LONGEST_START_SECONDS, page
            await asyncio.sleep(1)
            page = await self.page(key, path, "the page of one that starts")
        headers = {"Cookie": f"{cookie(key)}; {form['cookie']}", "Origin": self._url}
        began = time.perf_counter()
        async with self._http.post(f"{path}stop/", data={_CSRF: form[_CSRF]}, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
        self.seconds.setdefault("a stop is taken", []).append(time.perf_counter() - began)


def processes(ready: Stage, controller: psutil.Process) -> dict[str, list[psutil.Process]]:
    """The processes of the installation and the cluster's, by what they are."""
    from django.db import connection

    measured = {
        "web": [ready.web, *ready.other_webs],
        "controller": [controller],
        "the cluster": [ready.population.cluster],
    }
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()
        measured["PostgreSQL"] = [psutil.Process(pid).parent() or psutil.Process(pid)]
    return measured


def cpu_seconds(those: Sequence[psutil.Process]) -> float:
    """Seconds of CPU of these until now; of PostgreSQL's server, those of its sessions too, which come and go."""
    total = 0.0
    for each in those:
        total += sum(each.cpu_times()[:4])
        total += sum(sum(child.cpu_times()[:2]) for child in each.children() if child.name() == "postgres")
    return total


async def measure(
    ready: Stage,
    controller: psutil.Process,
    owners: "Sequence[User]",
    launching: "Sequence[User]",
    options: argparse.Namespace,
) -> None:
    share = options.share
    _, operators = await asyncio.to_thread(lambda: people(1, operators=max(1, round(_OPERATORS * share))))
    watching = owners[: round((_SCREENS - _OPERATORS) * share)]
    own, all_seeing = await asyncio.to_thread(lambda: (log_in(owners), log_in(operators)))
    launchers = await asyncio.to_thread(log_in, launching)
    screens = [Screen("executions", "", cookie(key)) for key in (*own[: len(watching)], *all_seeing)]
    arrivals, (server, kube) = Arrivals(), connect(ready.population.kubeconfig)
    cluster = Cluster(server, kube, ready.population.kubeconfig)
    connector = aiohttp.TCPConnector(limit=0, local_addr=("127.0.2.1", 0), keepalive_timeout=1)
    rng = random.Random(1)
    async with (
        kube,
        aiohttp.ClientSession(ready.url, connector=connector) as http,
        opened_screens(screens, ready, arrivals) as tasks,
    ):
        visitors = Visitors(http, ready.url)
        ids = await asyncio.to_thread(executions_of, owners)

        async def visit() -> None:
            place, path = rng.randrange(len(owners)), rng.choice(_PAGES)
            await visitors.page(own[place], path.format(id=ids[owners[place].pk]), f"page {path}")

        async def launch() -> None:
            await visitors.launch(rng.choice(launchers))

        until = time.monotonic() + options.minutes * 60
        measured = await asyncio.to_thread(processes, ready, controller)
        before, began = {name: cpu_seconds(those) for name, those in measured.items()}, time.monotonic()
        rate = _CHANGES * share
        follow = asyncio.create_task(cluster.follow(f"namespaces/{NAMESPACE}/pods", arrivals))
        async with follow_running(follow):
            load, *_ = await asyncio.gather(
                change_rows(
                    screens, ready, cluster, arrivals, per_second=rate, count=round(rate * options.minutes * 60)
                ),
                visitors.at_rate(_VISITS * share, until, visit),
                visitors.at_rate(_LAUNCHES * share, until, launch),
            )
        took = time.monotonic() - began
        for name, those in measured.items():
            memory = sum(each.memory_info().rss for each in those) / 2**20
            print(
                f"{name:12} {(cpu_seconds(those) - before[name]) / took:6.1%} of a core, {len(those)} with {memory:.0f} MiB"
            )
        say_head()
        say(screens, arrivals, load, ready, tasks)
    for name, seconds in sorted(visitors.seconds.items()):
        tell(name, seconds)
    tell("from the launch until it runs", await asyncio.to_thread(start_seconds))


def tell(name: str, seconds: Sequence[float]) -> None:
    half, most = (percentile(seconds, share) * 1000 for share in (0.5, 0.99))
    print(f"{name:32} p50 {half:7.0f} ms   p99 {most:7.0f} ms   {len(seconds):,} times")


def executions_of(owners: "Sequence[User]") -> dict[int, str]:
    from grid.models import Execution

    return dict(Execution.objects.filter(owner__in=owners, settled_at=None).values_list("owner_id", "pk"))


def start_seconds() -> list[float]:
    from grid.models import Execution

    started = Execution.objects.filter(title="Of the benchmark")
    times = started.values_list("requested_at", "started_at")
    return [(at - asked).total_seconds() for asked, at in times if at is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--webs", type=int, default=1, help="web processes on one port")
    options = parser.parse_args()
    share = options.share
    options.pods, options.nodes, options.churn = 1, max(20, round(_NODES * share)), 0.0
    with stage(options) as ready:
        from grid.models import UsageInterval

        print(f"{title(options)}; {share:g} of the goal", flush=True)
        kubeconfig, launching = ready.population.kubeconfig, newcomers(max(1, round(_LAUNCHING * share)))
        owners = inhabited(round(_PEOPLE * share))[: round(_RUNNING * share)]
        rows = running(owners, asyncio.run(node_names(kubeconfig)))
        asyncio.run(put(kubeconfig, pods_of(rows)))
        log = ready.population.folder / "controller.log"
        with process([*MANAGE, "controller"], log=log, env={"GRID_METRICS_PORT": "0"}) as controller:
            while UsageInterval.objects.count() < len(rows):  # until it has looked at each of them
                assert controller.poll() is None, log.read_text()
                time.sleep(1)
            asyncio.run(measure(ready, psutil.Process(controller.pid), owners, launching, options))


if __name__ == "__main__":
    main()
