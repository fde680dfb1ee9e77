"""What one changed pod costs a web process while people look at different lists of executions.

    .venv/bin/python -m benchmarks.onechange [PODS] [PEOPLE ...] [--quiet SECONDS]

One process without HTTP: the population of the embedded cluster in the real stores, its executions in a database, and the Executions
page of so many people, who own executions or belong to a project; each fourth of the owners is looked at by an operator instead. No two
see the same list. Messages are rendered as for a websocket and thrown away.

The changes come as lines of a watch, one after the other: a pod's container crashes once more. The next comes when the loop has nothing
to do, after the pod has become as it was, which is not counted: within the rest of a page after an update, whose end it waits for. With
`--quiet 0.03` it comes later than that and is sent at once, but nothing of it is in the CPU's caches. Counted is the CPU time of the
whole process until its loop has nothing to do. What pages do with time alone is left out: they have no ticks.

"In no list": nobody has a list of it open; without people that is decoding and storing alone. "On another page": in lists, but no page
that is open shows it, though some screens say how many rows there are. "Base" and "each screen" are the line that fits what is shown best.
"""

import argparse
import asyncio
import random
import re
import selectors
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count, cycle, islice
from statistics import linear_regression, mean
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import msgspec

from benchmarks.database import in_database
from benchmarks.views import SORTS
from grid.sandbox.population import Size, happenings, objects
from grid.sandbox.population.plan import POOLS, PopulationPlan, pools_of
from tests.support.builders import stamp

if TYPE_CHECKING:
    from dashboard.executions.viewmodels.executions_view import ExecutionsView
    from dashboard.shell.access import Viewer
    from grid.kube.decoding import Codec
    from grid.kube.objects import Pod, RawObject
    from grid.runtime import Runtime

NAMESPACE = "compute-grid"
CHANGES = 200  # of each kind
UNWATCHED = "nobody"  # the owner and the project of each tenth execution, at which nobody looks
_NEVER = 1e6  # seconds
_IDLE_SECONDS = 2.0  # the loop is idle when nothing is due for so long: whatever follows from a change comes sooner
_POD_LINK = re.compile(rf"/pods/{NAMESPACE}/([a-z0-9.-]+)/")


class IdleSelector(selectors.DefaultSelector):
    """Tells when its loop has nothing to do."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: asyncio.Future[float] | None = None

    async def idle(self) -> float:
        """Wait until the loop has nothing to do; return the CPU seconds of the process at that moment."""
        self._waiting = asyncio.get_running_loop().create_future()
        return await self._waiting

    def select(self, timeout: float | None = None) -> Any:
        if self._waiting is None or (timeout is not None and timeout < _IDLE_SECONDS):
            return super().select(timeout)
        self._waiting.set_result(time.process_time())
        self._waiting = None
        return super().select(0)


@dataclass
class Cost:
    """CPU seconds and the number of screens that were sent something, of each change."""

    seconds: list[float] = field(default_factory=list)
    screens: list[int] = field(default_factory=list)

    @property
    def milliseconds(self) -> float:
        return mean(self.seconds) * 1000 if self.seconds else float("nan")

    def by_screens(self) -> tuple[float, float]:
        """Milliseconds of a change apart from the screens that show it, and of each such screen, by least squares."""
        if len(set(self.screens)) < 2:
            return float("nan"), float("nan")
        fit = linear_regression(self.screens, self.seconds)
        return fit.intercept * 1000, fit.slope * 1000


class Screens:
    """Executions pages without a browser. `lately`: who was sent something. `pods`: shown by first messages."""

    def __init__(self, runtime: "Runtime") -> None:
        from dashboard.executions.pages.executions import ExecutionsPage
        from dashboard.shell.pages.feed import Feeds, Pace

        self.lately: set[int] = set()
        self.pods: set[str] = set()
        self.tasks: list[asyncio.Task[None]] = []
        self._runtime = runtime
        self._page = type("WithoutTicks", (ExecutionsPage,), {"tick": lambda *_: _NEVER})()
        self._feeds = Feeds(Pace(freshness=_NEVER))

    def open(self, viewer: "Viewer", view: "ExecutionsView") -> None:
        self.tasks.append(asyncio.create_task(self._follow(len(self.tasks), viewer, view)))

    async def _follow(self, number: int, viewer: "Viewer", view: "ExecutionsView") -> None:
        from dashboard.shell.pages.live import LiveConsumer

        is_first = True

        async def send(text_data: str) -> None:
            nonlocal is_first
            self.lately.add(number)
            if is_first:
                self.pods.update(_POD_LINK.findall(text_data))
            is_first = False

        consumer: Any = LiveConsumer(page=self._page)
        consumer.send = send
        with self._feeds.joined(self._page, self._runtime, viewer, view) as feed:
            await consumer._follow(feed, self._runtime, viewer, view)


@dataclass
class Bench:
    """A web process's runtime, and pods by name as the API server would send them."""

    runtime: "Runtime"
    codec: "Codec[Pod]"
    pods: "dict[str, RawObject]"
    selector: IdleSelector
    screens: "Screens"
    quiet: float
    numbers: Iterator[int] = field(default_factory=lambda: count(10_000_000))

    async def cost(self, names: Sequence[str], changes: int = CHANGES) -> Cost:
        cost = Cost()
        for name in islice(cycle(names), changes):
            pod, restarts = self.pods[name], next(self.numbers)
            crashed = deepcopy(pod)
            happenings.crashed(crashed, 137, "OOMKilled", "10s", stamp(datetime.now(UTC)))
            crashed["status"]["containerStatuses"][0]["restartCount"] = restarts  # so that its row was never rendered
            line = self._line(crashed)
            await self.selector.idle()
            await asyncio.sleep(self.quiet)
            self.screens.lately.clear()
            began = time.process_time()
            self._take(line)
            cost.seconds.append(await self.selector.idle() - began)
            cost.screens.append(len(self.screens.lately))
            self._take(self._line(pod))
        return cost

    def _line(self, pod: "RawObject") -> bytes:
        pod["metadata"]["resourceVersion"] = str(next(self.numbers))
        return msgspec.json.encode({"type": "MODIFIED", "object": pod})

    def _take(self, line: bytes) -> None:
        """Do as a reflector does with a line."""
        from grid.kube.decoding import Changed

        decoded = self.codec.line(line)
        assert isinstance(decoded, Changed)
        assert self.runtime.pods.apply(decoded.object), "it changes nothing"


def executions(size: int) -> "Iterator[list[RawObject]]":
    """The pods of each execution of a population; all of them are ready."""
    plan = PopulationPlan(Size(pods=size))
    nodes = {pool: [f"{pool}-{number}" for number in range(wanted)] for pool, wanted in _nodes(size).items()}
    now, made = stamp(datetime.now(UTC)), 0
    for number in count():
        execution = plan.execution(size - made)
        if number % 10 == 9:
            execution = replace(execution, owner=UNWATCHED, project=UNWATCHED)
        pods = list(_pods(plan, execution, now))
        for pod in pods:
            pod["metadata"]["resourceVersion"] = str(made)
            happenings.scheduled(pod, plan.rng.choice(nodes[execution.tier.pool]), now)
            happenings.running(pod, "10.0.0.1", now)
            happenings.ready(pod, now)
        yield pods
        made += len(pods)
        if made >= size:
            return


def _nodes(pods: int) -> dict[str, int]:
    counts = pools_of(max(20, pods // 30))
    return {pool.name: counts[pool.name] for pool, _, _ in POOLS}


def _pods(plan: PopulationPlan, execution: Any, now: str) -> "Iterator[RawObject]":
    if not execution.workers:
        yield objects.pod(execution, execution.name, plan.uid(), NAMESPACE, now)
        return
    for component, number in (("head", 1), ("worker", execution.workers)):
        owner, name = plan.uid(), objects.set_name(execution, component)
        for _ in range(number):
            pod = f"{name}-{plan.suffix(5)}"
            yield objects.pod(execution, pod, plan.uid(), NAMESPACE, now, component=component, owner=owner)


def filled(size: int) -> "tuple[Runtime, dict[str, RawObject]]":
    """A runtime with all pods, nodes, rows and measurements; and one pod of each execution as it was sent."""
    from grid.kube.objects import Node, Pod
    from grid.management.commands.record_simulated import record_simulated
    from grid.metrics.usage import Measured, Usage
    from grid.models.dataplane import LOCAL
    from grid.runtime import new_runtime
    from tests.support.builders import decode
    from tests.support.cluster import FakeCluster
    from tests.support.runtime import fill

    cluster, now = FakeCluster(), datetime.now(UTC)
    runtime = new_runtime({LOCAL: cluster}, monotonic=lambda: 0.0)  # its caches never grow old
    fill(runtime, cluster)
    pools = {pool.name: pool for pool, _, _ in POOLS}
    for name, wanted in _nodes(size).items():
        for number in range(wanted):
            node = objects.node(f"{name}-{number}", f"uid-{name}-{number}", pools[name], number, stamp(now))
            runtime.nodes.apply(decode(node, Node))
    raw = {}
    for pods in executions(size):
        for pod in pods:
            runtime.pods.apply(decode(pod, Pod))
        raw[pods[-1]["metadata"]["name"]] = pods[-1]
    record_simulated(runtime.pods.values(), with_clusters=True, now=now)
    runtime.usage.replace(Measured({}, dict.fromkeys(runtime.pods.keys(), Usage(250, 2**30))))
    return runtime, raw


def people(number: int) -> "list[tuple[Viewer, ExecutionsView]]":
    """So many viewers with their views: owners first, then members of projects who own nothing."""
    from dashboard.executions.viewmodels.executions_view import ExecutionsView
    from dashboard.shell.access import Role, Viewer, viewers_of
    from grid.accounts.sessions import SessionUser
    from grid.models import Membership, Project, User

    owners = list(User.objects.exclude(username=UNWATCHED).order_by("pk"))
    members = [User(username=f"member-{each}", password="!") for each in range(number - len(owners))]
    User.objects.bulk_create(members)
    projects = list(Project.objects.exclude(pk=UNWATCHED).order_by("pk"))
    Membership.objects.bulk_create(
        Membership(project=projects[place % len(projects)], user=user, role="contributor")
        for place, user in enumerate(User.objects.filter(username__startswith="member-").order_by("pk"))
    )
    users = User.objects.exclude(username=UNWATCHED).order_by("pk")
    viewers = viewers_of([SessionUser(user.pk, user.username, user.is_superuser) for user in users])
    operator = Viewer(0, "operator", Role.OPERATOR)
    watched = []
    for place, viewer in enumerate(list(viewers.values())[:number]):
        query: dict[str, str] = ({}, {"kind": "cluster"}, {"status": "running"}, {})[place % 4]
        if place % 4 == 3 and place < len(owners):
            viewer, query = operator, {"user": viewer.username}
        watched.append((viewer, ExecutionsView.parse({**query, "sort": SORTS[place % len(SORTS)]})))
    assert len({(viewer.id, view) for viewer, view in watched}) == number
    return watched


async def measure(
    runtime: "Runtime", raw: "dict[str, RawObject]", numbers: Sequence[int], quiet: float, selector: IdleSelector
) -> None:
    from dashboard.shell.pages import lists
    from grid.database import threads as database
    from grid.kube.decoding import Codec
    from grid.kube.objects import Pod
    from grid.runtime.garbage import set_aside

    views = await database.background.run(people, max(numbers))
    await runtime.executions.refresh()
    screens = Screens(runtime)
    bench, (unwatched, watched) = Bench(runtime, Codec(Pod), raw, selector, screens, quiet), _by_owner(raw)
    collector = asyncio.create_task(set_aside(lambda: True))
    await bench.cost(unwatched, 20)
    say(0, await bench.cost(unwatched))
    with patch.object(lists, "KEPT_SECONDS", _NEVER):  # a list is kept while pages ask for it, which have no ticks here
        for number in sorted(numbers):
            for viewer, view in views[len(screens.tasks) : number]:
                screens.open(viewer, view)
            await selector.idle()
            shown = [name for name in watched if name in screens.pods]
            beyond = [name for name in watched if name not in screens.pods]
            await bench.cost(shown, 20)
            say(number, await bench.cost(unwatched), await bench.cost(beyond), await bench.cost(shown))
    tasks = [collector, *screens.tasks]
    assert not any(task.done() for task in tasks), "a page has ended"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _by_owner(raw: "dict[str, RawObject]") -> tuple[list[str], list[str]]:
    """Names of pods that nobody looks at, and of the others, both shuffled."""
    from grid.core.labels import KEYS

    names = random.Random(1).sample(sorted(raw), len(raw))
    unwatched = [name for name in names if raw[name]["metadata"]["labels"][KEYS.user] == UNWATCHED]
    return unwatched, [name for name in names if raw[name]["metadata"]["labels"][KEYS.user] != UNWATCHED]


def say(number: int, unlisted: Cost, beyond: Cost | None = None, shown: Cost | None = None) -> None:
    cells = [f"{number:6,}", f"{unlisted.milliseconds:11.3f}"]
    if beyond is not None and shown is not None:
        base, each = shown.by_screens()
        for cost, width in ((beyond, 15), (shown, 7)):
            cells += [f"{cost.milliseconds:{width}.3f}", f"{mean(cost.screens or [0]):7.1f}"]
        cells += [f"{base:7.3f}", f"{each:11.3f}"]
    print(" | ".join(cells), flush=True)


def main(options: argparse.Namespace) -> None:
    began = time.perf_counter()
    runtime, raw = filled(options.pods)
    print(
        f"{options.pods:,} pods of {len(raw):,} executions, made in {time.perf_counter() - began:.0f} s; ms of CPU a change"
    )
    print("people | in no list | on another page | screens |   shown | screens |    base | each screen")
    selector = IdleSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(measure(runtime, raw, options.people, options.quiet, selector))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pods", type=int, nargs="?", default=1000)
    parser.add_argument("people", type=int, nargs="*", default=[1, 100, 1000])
    parser.add_argument("--quiet", type=float, default=0.0, help="seconds without a change before each (%(default)s)")
    given = parser.parse_args()
    in_database(lambda: main(given))
