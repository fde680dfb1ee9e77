"""Many people who all look at something else, and how long a change takes to those who see it.

    python -m benchmarks.scale views [--nodes 20] [--pods 500] [--sockets 20] [--per-second 20] [--changes 300]

Each websocket has a view of Executions that no other has: three in four are of practitioners, who see their own and their projects'
executions, in an order and with a filter of their own; one in four is an operator who looks at one person's. Twelve orders for each
person are all there are: 500 pods are of four people, 150,000 of some 900.
What changes are pods on any of these pages; counted is when each reaches every screen that shows it. Aim: p99 under 500 ms.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from urllib.parse import urlencode

from benchmarks.marks import Arrivals, Cluster, connect, running, say_head
from benchmarks.screens import Screen, change_rows, opened, say
from benchmarks.stage import NAMESPACE, Stage, add_size, cookie, log_in, people, stage, title

_SETTLE_SECONDS = 5.0
SORTS = ("age", "name", "-name", "kind", "user", "project", "tier", "-age", "-kind", "-user", "-project", "-tier")
_OPERATORS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_size(parser)
    parser.add_argument("--sockets", type=int, default=20)
    parser.add_argument("--per-second", type=float, default=20.0)
    parser.add_argument("--changes", type=int, default=300)


def main(options: argparse.Namespace) -> None:
    with stage(options) as ready:
        owners, operators = people(options.sockets, operators=_OPERATORS)
        names = [owner.username for owner in owners]
        own, all_seeing = log_in(owners), log_in(operators)
        screens = list(islice(different(names, own, all_seeing), options.sockets))
        assert len({(screen.cookie, screen.query) for screen in screens}) == options.sockets, (
            "more pods have more people"
        )
        print(f"{title(options)}; {options.sockets} views of {len(names)} people")
        asyncio.run(measure(ready, screens, options))


def different(names: Sequence[str], own: Sequence[str], all_seeing: Sequence[str]) -> Iterator[Screen]:
    """Views without end. No two are the same to the server, to which operators are one, as long as people and orders suffice."""
    for number in count():
        person, turn = number % len(names), number % 4
        order = SORTS[(number // len(names) + person) % len(SORTS)]
        if turn == 3:
            query = {"user": names[person], "sort": order}
            yield Screen("executions", f"?{urlencode(query)}", cookie(all_seeing[number % len(all_seeing)]))
        else:
            filters: dict[str, str] = ({}, {"kind": "cluster"}, {"status": "running"})[turn]
            yield Screen("executions", f"?{urlencode({**filters, 'sort': order})}", cookie(own[person]))


async def measure(ready: Stage, screens: Sequence[Screen], options: argparse.Namespace) -> None:
    arrivals = Arrivals()
    server, http = connect(ready.population.kubeconfig)
    cluster = Cluster(server, http, ready.population.kubeconfig)
    began = time.perf_counter()
    async with http, opened(screens, ready, arrivals) as tasks:
        print(
            f"all open after {time.perf_counter() - began:.1f} s; longest wait for the loop meanwhile"
            f" {ready.longest_wait() * 1000:.0f} ms; {sum(not screen.rows for screen in screens)} show no pod"
        )
        follow = asyncio.create_task(cluster.follow(f"namespaces/{NAMESPACE}/pods", arrivals))
        async with running(follow):
            await asyncio.sleep(_SETTLE_SECONDS)
            load = await change_rows(
                screens, ready, cluster, arrivals, per_second=options.per_second, count=options.changes
            )
            assert not follow.done(), "the watch ended"
        say_head()
        say(screens, arrivals, load, ready, tasks)
