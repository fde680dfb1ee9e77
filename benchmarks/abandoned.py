"""Memory of the web process over a time of changes, while half of the websockets stop reading without being closed.

    python -m benchmarks.scale abandoned [--nodes 20] [--pods 500] [--churn 20] [--sockets 20] [--minutes 3] [--every 60]

The population makes `--churn` changes a second. Of the sockets half read on, and the others read their first message only; the
server lets those go after a while, so every 40 seconds as many new ones come in their place. Each row is the resident memory then. Flat is:
the last third of the time needs less than 5 % more than the second.
"""

import argparse
import asyncio
import socket
import statistics
import time
from collections import deque
from collections.abc import Sequence
from itertools import chain, cycle

import aiohttp

from benchmarks.marks import Arrivals, running
from benchmarks.screens import OF_AN_ADDRESS, Screen, opened
from benchmarks.stage import Stage, add_size, log_in, people, stage, title
from benchmarks.views import different

FLAT_SHARE = 1.05
_ABANDON_SECONDS = 40.0  # by then the server has let them go
_FORGET_BATCHES = 3  # so many are held, then the oldest are closed on our side too
_OPERATORS = 20
_SMALL_BUFFER = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_size(parser, churn=20.0)
    parser.add_argument("--sockets", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two rows")


def main(options: argparse.Namespace) -> None:
    with stage(options) as ready:
        owners, operators = people(options.sockets, operators=_OPERATORS)
        names = [owner.username for owner in owners]
        own, all_seeing = log_in(owners), log_in(operators)
        views = different(names, own, all_seeing)
        kept = [next(views) for _ in range(options.sockets // 2)]
        left = [next(views) for _ in range(options.sockets - len(kept))]
        print(f"{title(options)}; {len(kept)} sockets that read, {len(left)} abandoned each {_ABANDON_SECONDS:.0f} s")
        asyncio.run(measure(ready, kept, left, options))


async def measure(ready: Stage, kept: Sequence[Screen], left: Sequence[Screen], options: argparse.Namespace) -> None:
    print(f"{'minute':>8} | {'MiB':>8} | {'connections':>11} | {'CPU of a core':>13} | longest wait of the loop, ms")
    sizes = []
    async with opened(kept, ready, Arrivals()) as tasks:
        leaving = asyncio.create_task(abandon(ready, left))
        async with running(leaving):
            began, spent, at = time.monotonic(), ready.cpu_seconds(), time.monotonic()
            while time.monotonic() - began < options.minutes * 60:
                await asyncio.sleep(options.every)
                now, cpu = time.monotonic(), ready.cpu_seconds()
                sizes.append(ready.mebibytes())
                connections = len([each for each in ready.web.net_connections("tcp") if each.status == "ESTABLISHED"])
                wait = await asyncio.to_thread(ready.longest_wait)
                print(
                    f"{(now - began) / 60:8.1f} | {sizes[-1]:8.1f} | {connections:11} | {(cpu - spent) / (now - at):13.0%}"
                    f" | {wait * 1000:.0f}",
                    flush=True,
                )
                spent, at = cpu, now
                if leaving.done():
                    leaving.result()
        print(f"sockets that read and were closed: {sum(task.done() for task in tasks)} of {len(tasks)}")
    print(verdict(sizes))


def verdict(sizes: Sequence[float]) -> str:
    """Whether memory is flat, as a sentence."""
    third = len(sizes) // 3
    if not third:
        return "too short to say whether it is flat"
    middle, end = statistics.mean(sizes[third : 2 * third]), statistics.mean(sizes[-third:])
    word = "flat" if end < middle * FLAT_SHARE else "not flat"
    return f"{word}: {middle:.1f} MiB in the second third, {end:.1f} MiB in the last, {end / middle - 1:+.1%}"


async def abandon(ready: Stage, screens: Sequence[Screen]) -> None:
    """For ever: open them, read nothing more, and close our end long after."""
    batches: deque[list[aiohttp.ClientSession]] = deque()
    pages: deque[list[aiohttp.ClientWebSocketResponse]] = deque()  # one that nobody holds is closed
    addresses = (f"127.0.2.{number}" for number in cycle(range(1, 255)))
    try:
        while True:
            batches.append([])
            pages.append([])
            for place, screen in enumerate(screens):
                if place % OF_AN_ADDRESS == 0:
                    connector = aiohttp.TCPConnector(local_addr=(next(addresses), 0), limit=0)
                    batches[-1].append(aiohttp.ClientSession(connector=connector))
                pages[-1].append(await _open_and_leave(ready, batches[-1][-1], screen))
            await asyncio.sleep(_ABANDON_SECONDS)
            if len(batches) >= _FORGET_BATCHES:
                for http in batches.popleft():
                    await http.close()
                pages.popleft()
    finally:
        for http in chain(*batches):
            await http.close()


async def _open_and_leave(ready: Stage, http: aiohttp.ClientSession, screen: Screen) -> aiohttp.ClientWebSocketResponse:
    url = f"{ready.url.replace('http', 'ws', 1)}/live/{screen.page}/{screen.query}"
    page = await http.ws_connect(
        url, headers={"Cookie": screen.cookie}, origin=ready.url, max_msg_size=0, autoping=False, autoclose=False
    )
    await page.receive()
    transport = page._response.connection and page._response.connection.transport
    assert isinstance(transport, asyncio.Transport)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
    transport.pause_reading()
    return page
