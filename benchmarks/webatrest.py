"""What a web process costs while nothing changes: its caches are full, people look at live pages, and nobody does anything.

    .venv/bin/python -m benchmarks.webatrest [--nodes 20] [--pods 500] [--sockets 50] [--seconds 60]

Two of three websockets are of Executions, the others of Infrastructure; each has a session of its own. Reported: the CPU of the process
as a share of one core, without its opening; and on PostgreSQL, which DATABASE_URL names, what its server counts a minute.
"""

import argparse
import asyncio
import time

from benchmarks.atrest import server_counts
from benchmarks.marks import Arrivals
from benchmarks.screens import Screen, opened
from benchmarks.stage import Stage, add_size, cookie, log_in, people, stage, title

SETTLE_SECONDS = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_size(parser)
    parser.add_argument("--sockets", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with stage(options) as ready:
        _, operators = people(operators=options.sockets)
        keys = log_in(operators)
        print(f"{title(options)}; {options.sockets} websockets; the web process is {ready.web.pid}", flush=True)
        asyncio.run(measure(ready, keys, options.seconds))


async def measure(ready: Stage, keys: list[str], seconds: float) -> None:
    screens = [Screen("executions" if n % 3 else "infrastructure", "", cookie(key)) for n, key in enumerate(keys)]
    async with opened(screens, ready, Arrivals()) as tasks:
        await asyncio.sleep(SETTLE_SECONDS)
        counts, cpu, began = await asyncio.to_thread(server_counts), ready.cpu_seconds(), time.perf_counter()
        messages = sum(screen.messages for screen in screens)
        await asyncio.sleep(seconds)
        took, used = time.perf_counter() - began, ready.cpu_seconds() - cpu
        later = await asyncio.to_thread(server_counts)
        assert not any(task.done() for task in tasks), "a websocket was closed"
    messages = sum(screen.messages for screen in screens) - messages
    print(f"at rest for {took:.0f} s: {100 * used / took:.1f} % of a core, {ready.mebibytes():.0f} MiB; ", end="")
    print(f"{messages * 60 / took:.0f} messages a minute")
    if any(later):
        transactions, rows = ((now - before) * 60 / took for now, before in zip(later, counts, strict=True))
        print(f"PostgreSQL: {transactions:.0f} transactions, {rows:,.0f} rows read a minute")


if __name__ == "__main__":
    main()
