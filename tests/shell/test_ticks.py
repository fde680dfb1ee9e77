"""When pages are looked at again and what is done for all of them together: freshness, turns under load, slices of rendering, alarms."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from dashboard.executions.pages.executions import ExecutionList, ExecutionsPage
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.access import Role, Viewer
from dashboard.shell.pages.deadline_timer import NEVER, Alarm, time_limit
from dashboard.shell.pages.feed import Feed, Feeds
from dashboard.shell.pages.turns import Turns
from dashboard.shell.viewmodels.freshness import FreshnessView
from dashboard.shell.viewmodels.live import Fragment
from grid.kube.objects import Pod, RawObject
from grid.kube.resources import PODS
from grid.kube.store import Freshness
from grid.metrics.usage import Measured, Usage
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, new_runtime
from tests.executions.executing import pod_of
from tests.support.builders import NAMESPACE, container_status, decode
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill
from tests.support.virtual import cancelled, loop_time, passes, virtual_time, works

OPERATOR = Viewer(id=1, username="olga", role=Role.OPERATOR)
RESTING = pod_of("e1", name="run-e1", node="n1", phase="Running", ready=True)


def restarted(times: int) -> RawObject:
    statuses = [container_status(ready=True, restarts=times)]
    return RESTING | {"status": RESTING["status"] | {"containerStatuses": statuses}}


class Counted(ExecutionsPage):
    looks = 0

    async def read(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView) -> ExecutionList:
        self.looks += 1
        return await super().read(runtime, viewer, view)


class Resting(Counted):
    rest_seconds = 1.0


@virtual_time
async def test_resting_page_merges_changes_and_shows_lone_one_immediately() -> None:
    page, cluster = Resting(), FakeCluster()
    runtime = new_runtime({LOCAL: cluster}, monotonic=loop_time)
    fill(runtime, cluster)
    with Feeds().joined(page, runtime, OPERATOR, ExecutionsView()) as feed:
        await asyncio.sleep(2)
        before = page.looks
        for number in range(100):
            cluster.put(PODS, pod_of(f"e{number}", name=f"run-{number}"))
            fill(runtime, cluster)
            await asyncio.sleep(0.1)
        assert 10 <= page.looks - before <= 11
        await asyncio.sleep(2)
        version = feed.version
        cluster.put(PODS, pod_of("e-last", name="run-last"))
        fill(runtime, cluster)
        await asyncio.sleep(0.05)
        assert feed.version > version


async def looks_in_a_minute(pod: RawObject, view: ExecutionsView) -> int:
    page, cluster = Counted(), FakeCluster()
    cluster.put(PODS, pod)
    runtime = new_runtime({LOCAL: cluster}, monotonic=loop_time)
    fill(runtime, cluster)
    with Feeds().joined(page, runtime, OPERATOR, view):
        await asyncio.sleep(1)
        before = page.looks
        await asyncio.sleep(60)
    return page.looks - before


@virtual_time
async def test_quiet_pod_page_is_refreshed_every_twenty_seconds() -> None:
    assert await looks_in_a_minute(RESTING, ExecutionsView()) == 3


@pytest.mark.parametrize(
    ("pod", "view"),
    [(restarted(1), ExecutionsView()), (RESTING, ExecutionsView(age="1 d")), (RESTING, ExecutionsView(text="x"))],
)
@virtual_time
async def test_page_changing_with_time_is_refreshed_every_five_seconds(pod: RawObject, view: ExecutionsView) -> None:
    assert await looks_in_a_minute(pod, view) == 12


class Working(Counted):
    """Each look holds up the loop for `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def fragments(self, *given: Any) -> Sequence[Fragment]:
        works(self.seconds)
        return super().fragments(*given)


class Reading(Working):
    reads_database = True


async def taken_in(feed: Feed, seconds: float) -> None:
    """Do as a websocket whose sending takes so long."""
    version = 0
    while True:
        await feed.after(version)
        version = feed.version
        works(seconds)


@pytest.mark.parametrize(
    ("page", "sending", "apart"),
    [
        (Working(0.0), 0.0, 0.001),
        (Working(0.002), 0.0, 0.01),
        (Working(0.0), 0.003, 0.015),
        (Working(0.06), 0.02, 0.1),
        (Reading(0.06), 0.02, 0.4),
    ],
)
@virtual_time
async def test_slower_updates_merge_more_changes(page: Working, sending: float, apart: float) -> None:
    runtime = runtime_with()
    with Feeds().joined(page, runtime, OPERATOR, ExecutionsView()) as feed:
        socket = asyncio.create_task(taken_in(feed, sending))
        await asyncio.sleep(1)
        before, end = page.looks, loop_time() + 20 * apart
        for times in count(1):
            if loop_time() >= end:
                break
            runtime.pods.apply(decode(restarted(times), Pod))
            await asyncio.sleep(0.001)
        assert page.looks - before == pytest.approx(20, abs=1)
        await cancelled(socket)


def runtime_with(count: int = 1) -> Runtime:
    cluster = FakeCluster()
    for number in range(count):
        cluster.put(PODS, pod_of(f"e{number}", name=f"run-e{number}", node="n1", phase="Running", ready=True))
    runtime = new_runtime({LOCAL: cluster}, monotonic=loop_time)
    fill(runtime, cluster)
    return runtime


class LateOnce(Turns):
    """One turn comes three seconds late: the next, while `is_late`."""

    is_late = True

    async def take(self, due: float) -> None:
        if self.is_late:
            self.is_late = False
            await asyncio.sleep(3)
        await super().take(due)


def freshness_of(feed: Feed) -> FreshnessView:
    view = feed.latest.singles["freshness"].context
    assert isinstance(view, FreshnessView)
    return view


@virtual_time
async def test_page_late_once_recovers_and_is_not_behind() -> None:
    runtime = runtime_with()
    with Feeds(turns=LateOnce()).joined(ExecutionsPage(), runtime, OPERATOR, ExecutionsView()) as feed:
        await feed.after(0)
        assert freshness_of(feed).state == "behind"
        await asyncio.sleep(6)
        runtime.pods.mark_synced(loop_time())
        assert freshness_of(feed).headline != "Behind"


@virtual_time
async def test_single_failure_does_not_end_page_freshness(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: Iterator[Freshness | ValueError] = iter([Freshness(True, 0.0, ""), ValueError("once")])

    def freshness(runtime: Runtime) -> Freshness:
        answer = next(answers, Freshness(True, 100.0, "The API server is away."))
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Runtime, "freshness", freshness)
    with Feeds().joined(ExecutionsPage(), runtime_with(), OPERATOR, ExecutionsView()) as feed:
        await feed.after(0)
        assert freshness_of(feed).state == "live"
        await asyncio.sleep(3)
        assert freshness_of(feed).state == "behind"


@virtual_time
async def test_pages_of_each_runtime_get_its_own_measurements() -> None:
    runtime, other, feeds = runtime_with(), runtime_with(), Feeds()
    page, view = ExecutionsPage(), ExecutionsView()
    with (
        feeds.joined(page, runtime, OPERATOR, view) as first,
        feeds.joined(ExecutionsPage(), other, OPERATOR, view) as feed,
    ):
        await asyncio.sleep(1)
        versions = first.version, feed.version
        other.usage.replace(Measured({}, {f"{NAMESPACE}/run-e0": Usage(1, 2)}))
        other.hub.publish(other.usage.name)
        await asyncio.sleep(0.5)
        assert (first.version, feed.version) == (versions[0], versions[1] + 1)


class Cpu:
    """A thread's clock that stands still but for the work that is told to it, which takes as much of the loop's time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def take_turn(turns: Turns, cpu: Cpu, seconds: float, *, due: float | None = None) -> float:
    """Wait for a turn and work; the time at which the turn came."""
    await turns.take(loop_time() if due is None else due)
    at = loop_time()
    with turns.counted():
        cpu.seconds += seconds
    return at


@virtual_time
async def test_after_a_quiet_time_pages_look_at_once() -> None:
    cpu = Cpu()
    turns = Turns(cpu=cpu)
    await passes(10)
    began = loop_time()
    for _ in range(5):
        assert await take_turn(turns, cpu, 0.01) == began


@virtual_time
async def test_pages_use_at_most_their_share_of_time() -> None:
    cpu = Cpu()
    turns = Turns(share=0.5, cpu=cpu)
    await passes(10)
    began = loop_time()
    while loop_time() < began + 20:
        await take_turn(turns, cpu, 0.02)
    assert abs(cpu.seconds - 10) < 0.2


@virtual_time
async def test_longest_due_page_comes_first() -> None:
    cpu, order = Cpu(), list[str]()
    turns = Turns(cpu=cpu)
    await take_turn(turns, cpu, 1.0)  # so the others have to wait

    async def page(name: str, due: float) -> None:
        await take_turn(turns, cpu, 0.0, due=due)
        order.append(name)

    await asyncio.gather(page("second", 2), page("third", 3), page("first", 1))
    assert order == ["first", "second", "third"]


@virtual_time
async def test_page_left_while_waiting_takes_no_turn() -> None:
    cpu = Cpu()
    turns = Turns(cpu=cpu)
    await take_turn(turns, cpu, 0.3)
    left = asyncio.create_task(take_turn(turns, cpu, 5.0, due=-1))
    stays: asyncio.Task[float] = asyncio.create_task(take_turn(turns, cpu, 0.0))
    await passes(0.01)
    await cancelled(left)
    async with asyncio.timeout(2):
        assert await stays < 1, "after the first one's work, and not after that of the one that left"


@virtual_time
async def test_alarm_rings_once_at_its_last_set_time() -> None:
    rung = list[float]()
    with Alarm(lambda: rung.append(loop_time())) as alarm:
        alarm.set(1.0)
        alarm.set(5.0)
        alarm.set(3.0)
        await asyncio.sleep(2)
        assert rung == []
        await asyncio.sleep(10)
    assert rung == [pytest.approx(3.0)]


@virtual_time
async def test_time_limit_ends_only_what_is_unfinished() -> None:
    done = 0
    with pytest.raises(TimeoutError):
        async with time_limit() as limit:
            for seconds in (0.5, 0.9, 3.0):
                limit.set(loop_time() + 1)
                await asyncio.sleep(seconds)
                limit.set(NEVER)
                await asyncio.sleep(5)
                done += 1
    assert done == 2
    assert loop_time() == pytest.approx(0.5 + 5 + 0.9 + 5 + 1)
