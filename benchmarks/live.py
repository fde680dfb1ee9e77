"""How long a change takes from the API server to a row in the browser, beside `kubectl get -w` in the same run.

    python -m benchmarks.scale live [--nodes 20] [--pods 500] [--sockets 50] [--per-second 20] [--changes 300]

So many websockets of Executions, all of operators with the usual view, and after them as many of Infrastructure; what changes are
pods, or nodes, on the page that they show. `kubectl` watches the pods of the executions on that page, or all nodes.
Aims: p50 no more than kubectl's and 25 ms, p99 no more than 1.5 times kubectl's and 100 ms; the loop waits no longer than 50 ms. Its
longest wait is that of the last minute, so it is of the changes alone when they last longer.
"""

import argparse
import asyncio
from collections.abc import Sequence

from benchmarks.marks import Arrivals, Cluster, connect, percentile, running, say_delays, say_head
from benchmarks.screens import Screen, change_rows, opened, say
from benchmarks.stage import NAMESPACE, Stage, add_size, cookie, log_in, people, stage, title
from grid.core.labels import INSTANCE_TYPE, KEYS

_SETTLE_SECONDS = 5.0
_OPERATORS = 20
_RESTARTS = "custom-columns=NAME:.metadata.name,RESTARTS:.status.containerStatuses[0].restartCount"
_TYPES = "custom-columns=NAME:.metadata.name,TYPE:.metadata.labels." + INSTANCE_TYPE.replace(".", r"\.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_size(parser)
    parser.add_argument("--sockets", type=int, default=50)
    parser.add_argument("--per-second", type=float, default=20.0)
    parser.add_argument("--changes", type=int, default=300)


def main(options: argparse.Namespace) -> None:
    with stage(options) as ready:
        _, operators = people(operators=_OPERATORS)
        keys = log_in(operators)
        print(f"{title(options)}; {options.sockets} websockets, {options.per_second:g} changes of rows a second")
        say_head()
        for page in ("executions", "infrastructure"):
            asyncio.run(measure(ready, page, keys, options))


async def measure(ready: Stage, page: str, keys: Sequence[str], options: argparse.Namespace) -> None:
    screens = [Screen(page, "", cookie(keys[number % len(keys)])) for number in range(options.sockets)]
    arrivals = Arrivals()
    server, http = connect(ready.population.kubeconfig)
    cluster = Cluster(server, http, ready.population.kubeconfig)
    path = f"namespaces/{NAMESPACE}/pods" if page == "executions" else "nodes"
    async with http, opened(screens, ready, arrivals) as tasks:
        follow = asyncio.create_task(cluster.follow(path, arrivals))
        kubectl = asyncio.create_task(cluster.follow_with_kubectl(_watched(screens[0]), arrivals))
        async with running(follow, kubectl):
            await asyncio.sleep(_SETTLE_SECONDS)
            load = await change_rows(
                screens, ready, cluster, arrivals, per_second=options.per_second, count=options.changes
            )
            assert not follow.done() and not kubectl.done(), "a watch ended"
        lines = arrivals.delays(arrivals.kubectl)
        say_delays(f"kubectl get {path.rpartition('/')[2]} -w", lines, f"{len(lines):,} of {load.made:,} seen")
        say(screens, arrivals, load, ready, tasks)
    aims = percentile(lines, 0.5) * 1000 + 25, percentile(lines, 0.99) * 1500 + 100
    print(f"  aim: p50 {aims[0]:.1f} ms, p99 {aims[1]:.1f} ms")


def _watched(screen: Screen) -> Sequence[str]:
    """What kubectl is asked for."""
    if screen.page == "infrastructure":
        return ["nodes", "-o", _TYPES]
    ids = sorted({name.split("-")[1] for name in screen.rows})  # of "workspace-ID" and "cluster-ID-worker-..."
    return ["pods", "-n", NAMESPACE, "-l", f"{KEYS.execution} in ({','.join(ids)})", "-o", _RESTARTS]
