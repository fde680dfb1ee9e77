"""What guessing passwords costs other people's pages: the latency of a page while nobody guesses, and while 30 clients do.

    python -m benchmarks.logins [--clients 30] [--pages 120]

It starts a whole Compute Grid in a folder of its own and asks for the operator's page of executions, one after the other. The
guessers come from one address (which is soon locked), then each from an address of its own and for a new name each time, so
that nothing is locked and every guess wants to be hashed. Run it on Linux, where all of 127.0.0.0/8 is this machine.
"""

import argparse
import asyncio
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from benchmarks.wholegrid import log_in
from tests.end_to_end.grid import Grid

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_WARM_UP_SECONDS = 3.0
Name = Callable[[int], str]  # the name that the guess with this number is for


async def page_latencies(url: str, cookie: str, count: int) -> list[float]:
    """Seconds of each of `count` pages, asked for one after the other."""
    latencies = []
    async with aiohttp.ClientSession(headers={"Cookie": cookie}) as session:
        for _ in range(count):
            start = time.perf_counter()
            async with session.get(f"{url}/executions/") as answer:
                await answer.read()
                assert answer.status == 200, answer.status
            latencies.append(time.perf_counter() - start)
            await asyncio.sleep(0.05)
    return latencies


async def guess(url: str, address: str, name: Name, answers: Counter[int]) -> None:
    """Guess until cancelled, each guess as soon as the one before is answered; refused connections count as status 0."""
    number = 0
    while True:
        connector = aiohttp.TCPConnector(local_addr=(address, 0))
        cookies = aiohttp.CookieJar(unsafe=True)
        try:
            async with aiohttp.ClientSession(connector=connector, cookie_jar=cookies) as session:
                async with session.get(f"{url}/login/") as answer:
                    token = _TOKEN.search(await answer.text())
                while token is not None:
                    form = {"username": name(number), "password": "guess", "csrfmiddlewaretoken": token[1]}
                    async with session.post(f"{url}/login/", data=form, headers={"Origin": url}) as answer:
                        await answer.read()
                        answers[answer.status] += 1
                    number += 1
        except aiohttp.ClientError:
            answers[0] += 1
        await asyncio.sleep(0.1)


@asynccontextmanager
async def guessing(url: str, addresses: list[str], name: Name) -> AsyncIterator[Counter[int]]:
    answers: Counter[int] = Counter()
    tasks = [asyncio.create_task(guess(url, address, name, answers)) for address in addresses]
    await asyncio.sleep(_WARM_UP_SECONDS)
    yield answers
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def say(title: str, latencies: list[float], quiet: list[float], answers: Counter[int]) -> None:
    parts = statistics.quantiles(latencies, n=20)
    before = statistics.quantiles(quiet, n=20)
    counts = ", ".join(f"{status}: {count}" for status, count in sorted(answers.items()))
    print(
        f"{title:44} p50 {parts[9] * 1000:6.0f} ms ({parts[9] / before[9]:4.1f})  "
        f"p95 {parts[18] * 1000:6.0f} ms ({parts[18] / before[18]:4.1f})  answers to guesses {counts or '-'}",
        flush=True,
    )


async def measure(grid: Grid, clients: int, pages: int) -> None:
    cookie = await log_in(grid)
    await page_latencies(grid.url, cookie, 20)
    quiet = await page_latencies(grid.url, cookie, pages)
    say("nobody guesses", quiet, quiet, Counter())
    everywhere = [f"127.7.{number // 200}.{number % 200 + 1}" for number in range(clients)]
    async with guessing(grid.url, everywhere, lambda number: f"name-{number}") as answers:
        say(f"{clients} addresses, new names", await page_latencies(grid.url, cookie, pages), quiet, answers)
    async with guessing(grid.url, ["127.8.0.1"] * clients, lambda number: "scientist") as answers:
        say(
            f"{clients} clients of one address, one name", await page_latencies(grid.url, cookie, pages), quiet, answers
        )
    say("nobody guesses any more", await page_latencies(grid.url, cookie, pages), quiet, Counter())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=30)
    parser.add_argument("--pages", type=int, default=120)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compute-grid-benchmark-") as folder:
        grid = Grid(Path(folder) / "var")
        grid.start()
        try:
            asyncio.run(measure(grid, arguments.clients, arguments.pages))
        finally:
            grid.interrupt()


if __name__ == "__main__":
    main()
