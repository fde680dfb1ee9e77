"""Live pages as browsers have them, and the changes of rows that are on them."""

import asyncio
import random
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from benchmarks.marks import FIRST, STEP, Arrivals, Cluster, percentile, say_delays
from benchmarks.stage import NAMESPACE, Stage

_ROWS = {
    "executions": re.compile(rf"/pods/{NAMESPACE}/([a-z0-9.-]+)/"),
    "infrastructure": re.compile(r'<tr id="node-([a-z0-9.-]+)"'),  # other parts of the page link to nodes as well
}
OF_AN_ADDRESS = 250  # connections; the server lets one address have 512
_AT_ONCE = 20
_LONGEST_OPENING_SECONDS = 300
_LATEST_SECONDS = 5.0  # that the last change has to arrive
_REMEMBERED_SECONDS = 61.0  # that the web process tells its longest wait for


@dataclass(slots=True, eq=False)
class Screen:
    """`rows` are the names of the pods or nodes that it began with. `seen` is when it showed each number first."""

    page: str
    query: str
    cookie: str
    rows: frozenset[str] = frozenset()
    seen: dict[int, float] = field(default_factory=dict)
    expected: set[int] = field(default_factory=set)
    messages: int = 0
    characters: int = 0

    async def follow(
        self, http: aiohttp.ClientSession, stage: Stage, arrivals: Arrivals, is_open: asyncio.Event
    ) -> None:
        url = f"{stage.url.replace('http', 'ws', 1)}/live/{self.page}/{self.query}"
        async with http.ws_connect(url, headers={"Cookie": self.cookie}, origin=stage.url, max_msg_size=0) as socket:
            async for message in socket:
                text = str(message.data)
                self.messages += 1
                self.characters += len(text)
                if self.messages == 1:
                    self.rows = frozenset(_ROWS[self.page].findall(text))
                    is_open.set()
                else:
                    arrivals.note(self.seen, text)
        raise ConnectionError(f"{self.page}{self.query} was closed with {socket.close_code}")


@asynccontextmanager
async def opened(
    screens: Sequence[Screen], stage: Stage, arrivals: Arrivals
) -> AsyncIterator[Sequence["asyncio.Task[None]"]]:
    """All of them with their first rows, until the block ends; the tasks that follow them, of which none should have ended."""
    sessions, tasks, gate = [], [], asyncio.Semaphore(_AT_ONCE)
    for number in range(-(-len(screens) // OF_AN_ADDRESS)):
        connector = aiohttp.TCPConnector(local_addr=(f"127.0.1.{number + 1}", 0), limit=0)
        sessions.append(aiohttp.ClientSession(connector=connector))

    async def open_one(number: int, screen: Screen) -> None:
        async with gate:
            is_open = asyncio.Event()
            http = sessions[number // OF_AN_ADDRESS]
            task = asyncio.create_task(screen.follow(http, stage, arrivals, is_open))
            tasks.append(task)
            opening = asyncio.create_task(is_open.wait())
            await asyncio.wait({task, opening}, timeout=_LONGEST_OPENING_SECONDS, return_when="FIRST_COMPLETED")
            opening.cancel()
            if task.done():
                task.result()

    try:
        await asyncio.gather(*(open_one(number, screen) for number, screen in enumerate(screens)))
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session in sessions:
            await session.close()


@dataclass(frozen=True, slots=True)
class Load:
    """What the web process did while rows changed."""

    seconds: float
    made: int
    cpu_seconds: float
    longest_wait: float
    is_whole_minute: bool


async def change_rows(
    screens: Sequence[Screen], stage: Stage, cluster: Cluster, arrivals: Arrivals, *, per_second: float, count: int
) -> Load:
    """Change rows that are on these screens, each in its turn, and note on which each number is expected."""
    watchers: Mapping[str, list[Screen]] = defaultdict(list)
    for screen in screens:
        for name in screen.rows:
            watchers[name].append(screen)
    is_of_pods = screens[0].page == "executions"
    names = sorted(watchers)
    random.Random(1).shuffle(names)
    names = names[:count]
    pods = await _pods(cluster, names) if is_of_pods else {}
    names = [name for name in names if not is_of_pods or name in pods]
    assert names, "there is no row on any screen"
    tasks: set[asyncio.Task[None]] = set()
    made = 0

    async def change(name: str, number: int) -> None:
        nonlocal made
        arrivals.sent.add(number)
        if await (cluster.mark_pod(pods[name], number) if is_of_pods else cluster.mark_node(name, number)):
            made += 1
            for screen in watchers[name]:
                screen.expected.add(number)

    cpu, began = stage.cpu_seconds(), time.perf_counter()
    longest, is_whole_minute = 0.0, False
    for place in range(count):
        await asyncio.sleep(max(0.0, began + place / per_second - time.perf_counter()))
        task = asyncio.create_task(change(names[place % len(names)], FIRST + STEP * place))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if place % max(1, round(20 * per_second)) == 0 and time.perf_counter() - began > _REMEMBERED_SECONDS:
            longest, is_whole_minute = max(longest, await asyncio.to_thread(stage.longest_wait)), True
    await asyncio.gather(*tasks)
    took = time.perf_counter() - began
    spent = stage.cpu_seconds() - cpu
    await asyncio.sleep(_LATEST_SECONDS)
    is_whole_minute = is_whole_minute or took + _LATEST_SECONDS > _REMEMBERED_SECONDS
    longest = max(longest, await asyncio.to_thread(stage.longest_wait))
    return Load(took, made, spent, longest, is_whole_minute)


async def _pods(cluster: Cluster, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Those that have a container to change, as they are now."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def read(name: str) -> dict[str, Any] | None:
        async with gate:
            return await cluster.pod(NAMESPACE, name)

    read_now = await asyncio.gather(*map(read, names))
    pods = zip(names, read_now, strict=True)
    return {name: pod for name, pod in pods if pod is not None and pod["status"].get("containerStatuses")}


def say(
    screens: Sequence[Screen], arrivals: Arrivals, load: Load, stage: Stage, tasks: Sequence["asyncio.Task[None]"]
) -> None:
    """The rows of the table, and what they cost."""
    delays = [delay for screen in screens for delay in arrivals.delays(screen.seen, screen.expected)]
    expected = sum(len(screen.expected) for screen in screens)
    say_delays(f"its row at the socket, {screens[0].page}", delays, f"{len(delays):,} of {expected:,} seen")
    aim = " (opening of the sockets included)" if not load.is_whole_minute else ""
    print(
        f"  {load.made:,} changes, {load.made / load.seconds:.1f} a second, each on {expected / max(1, load.made):.1f} screens;"
        f" web process: {load.cpu_seconds / load.seconds:.0%} of a core, {stage.mebibytes():.0f} MiB"
    )
    print(f"  longest wait for its loop {load.longest_wait * 1000:.0f} ms{aim}")
    sizes = [screen.characters / max(1, screen.messages) / 1000 for screen in screens]
    print(
        f"  median of all messages, first ones too: {percentile(sizes, 0.5):.1f} kB; closed sockets: {sum(t.done() for t in tasks)}"
    )
