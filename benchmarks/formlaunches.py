"""Launches through the real form, while PODS run: many people at once, and the page and the submission alone.

    .venv/bin/python -m benchmarks.formlaunches [--webs 2] [--pods 5000] [--people 20] [--launches 200] [--own 0]
    .venv/bin/python -m tests.support.postgresql .venv/bin/python -m benchmarks.formlaunches    (on PostgreSQL)

The cluster is an embedded one with simulated executions, and the web process is a real one; nothing admits what is launched. Each person
has a form of their own for each launch, and all forms are sent at once, in one session for each person. Reported: launches a second, the
time of a submission and the web process's CPU for it; and the same for one form and one submission after the other, of a person of whom
OWN executions run, beyond the person's slots. Nothing may fail.
"""

import argparse
import asyncio
import re
import statistics
import time
from collections.abc import Awaitable, Iterable, Sequence
from datetime import timedelta
from itertools import cycle, islice
from typing import TYPE_CHECKING

import aiohttp

from benchmarks.stage import Stage, add_size, cookie, log_in, stage, title

if TYPE_CHECKING:
    from grid.models import User

_TOKENS = re.compile(r'name="(csrfmiddlewaretoken|token)" value="([^"]+)"')
_ALONE = 20  # submissions, one after the other
_FORM = {"kind": "workspace", "title": "Of the benchmark", "project": "bench", "environment": "bench", "tier": "bench"}


def newcomers(number: int) -> "list[User]":
    """People who have launched nothing and contribute to one project, each with a session of theirs."""
    from grid import configuration as central
    from grid.models import ConfigRecord, Environment, HardwareTier, Membership, Project, User

    Environment.objects.create(id="bench", name="Bench", image="bench:1", port=8888)
    HardwareTier.objects.create(id="bench", name="Bench", node_pool="default", cores="0.1", memory="100Mi")
    project = Project.objects.create(id="bench", name="Bench")
    people = [User.objects.create_user(f"bench-{place}") for place in range(number)]
    contributes = Membership.Role.CONTRIBUTOR
    Membership.objects.bulk_create(Membership(project=project, user=user, role=contributes) for user in people)
    for limit in (central.WAITING_PER_PERSON, central.WAITING_PER_PROJECT, central.GLOBAL_QUEUE_LIMIT):
        ConfigRecord.objects.update_or_create(key=limit.key, defaults={"value": "100000"})
    return people


def running(owner: "User", number: int) -> None:
    """So many running executions of one person; the cluster has none of their pods."""
    from django.utils import timezone

    from grid.executions.launchsettings import launch_settings
    from grid.executions.spec import serialize_spec
    from grid.models import Environment, Execution, HardwareTier, Project, State

    rows, central = [], launch_settings()
    environment, tier = Environment.objects.get(id="bench"), HardwareTier.objects.get(id="bench")
    project = Project.objects.get(id="bench")
    for minutes in range(number):
        at = timezone.now() - timedelta(minutes=minutes)
        times = dict.fromkeys(("requested_at", "state_since", "slots_reserved_at", "started_at"), at)
        row = Execution(kind="workspace", owner=owner, project=project, environment=environment, tier=tier, **times)
        row.slots, row.state, row.reason = 1, State.RUNNING, "ready"
        serialize_spec(row, central=central)
        rows.append(row)
    Execution.objects.bulk_create(rows, batch_size=1000)


async def opened(http: aiohttp.ClientSession, key: str) -> dict[str, str]:
    """A form as its page gives it to that person, filled in."""
    async with http.get("/launch/", headers={"Cookie": cookie(key)}) as answer:
        page = await answer.text()
        assert answer.status == 200, page
        csrf = "; ".join(f"{name}={morsel.value}" for name, morsel in answer.cookies.items() if "csrf" in name)
    return dict(_TOKENS.findall(page)) | _FORM | {"cookie": csrf}


async def launched(http: aiohttp.ClientSession, key: str, form: dict[str, str], origin: str) -> tuple[float, str]:
    """Seconds until the answer says that it is launched, and the address of its page."""
    fields = {name: value for name, value in form.items() if name != "cookie"}
    headers = {"Cookie": f"{cookie(key)}; {form['cookie']}", "Origin": origin}
    began = time.perf_counter()
    async with http.post("/launch/", data=fields, headers=headers, allow_redirects=False) as answer:
        text = await answer.text()
        assert answer.status == 302, text[:3000]
        return time.perf_counter() - began, answer.headers["Location"]


async def sent(http: aiohttp.ClientSession, key: str, form: dict[str, str], origin: str) -> float:
    """Seconds until the answer says that it is launched."""
    waited, _ = await launched(http, key, form, origin)
    return waited


async def measure(ready: Stage, keys: Sequence[str], launches: int) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(ready.url, connector=connector) as http:

        async def form() -> float:
            began = time.perf_counter()
            await opened(http, keys[0])
            return time.perf_counter() - began

        async def one_by_one(name: str, asked: Iterable[Awaitable[float]]) -> None:
            cpu = ready.cpu_seconds()
            times = [await answer for answer in asked]
            say(name, times, ready.cpu_seconds() - cpu)

        await form()
        await one_by_one("the form alone", (form() for _ in range(_ALONE)))
        forms = [await opened(http, keys[0]) for _ in range(_ALONE)]
        await one_by_one("a submission alone", (sent(http, keys[0], each, ready.url) for each in forms))
        of_all = [(key, await opened(http, key)) for key in islice(cycle(keys), launches)]
        began, cpu = time.perf_counter(), ready.cpu_seconds()
        times = await asyncio.gather(*(sent(http, key, each, ready.url) for key, each in of_all))
        print(f"{launches / (time.perf_counter() - began):.1f} launches a second")
        say(f"{launches} at once", times, ready.cpu_seconds() - cpu)


def say(name: str, seconds: Sequence[float], cpu: float) -> None:
    cuts, each = statistics.quantiles(seconds, n=100, method="inclusive"), cpu / len(seconds)
    print(
        f"{name:20} p50 {cuts[49] * 1000:7.1f} ms   p99 {cuts[98] * 1000:7.1f} ms   {each * 1000:5.1f} ms of CPU each"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_size(parser, nodes=1000, pods=5000)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--own", type=int, default=0)
    parser.add_argument("--webs", type=int, default=1, help="web processes on the port; the CPU is that of the first")
    options = parser.parse_args()
    with stage(options) as ready:
        print(f"{title(options)}, {options.own:,} run of who is alone")
        people = newcomers(options.people)
        running(people[0], options.own)
        asyncio.run(measure(ready, log_in(people), options.launches))


if __name__ == "__main__":
    main()
