"""What the lines of nodes' rows cost a web process: taking a round of measurements in, keeping it, and a changed node's row.

    .venv/bin/python -m benchmarks.nodelines [NODES]

Half an hour of measurements of NODES nodes, one every 15 seconds, of random values, which are the hardest to compress. A row is made of its
sums and rendered, with the lines and without, in turn, so that both have the same machine; CPU milliseconds, the median of 300 each. "Kept"
is what the samples take, counted by tracemalloc.
"""

import gzip
import os
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from statistics import median

import django

from grid.metrics.usage import KEPT_MINUTES, RecentUsage, Usage, UsageSample
from tests.support import builders
from tests.support.builders import decode

ROUNDS_A_MINUTE = 4
RUNS = 300
ROWS = 50  # of a page
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
_BYTES = 64 * 2**30


def measured(nodes: int, rng: random.Random) -> Mapping[str, Usage]:
    return {f"node-{each}": Usage(rng.randrange(16_000), rng.randrange(_BYTES)) for each in range(nodes)}


def cpu_ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def keep(nodes: int) -> RecentUsage:
    rng, recent = random.Random(1), RecentUsage()
    rounds = [measured(nodes, rng) for _ in range(8)]
    recent.add(0, rounds[0])  # so that the names are there before anything is counted
    recent = RecentUsage()
    within, new = list[float](), list[float]()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    recent.add(1, rounds[0])
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    for minute in range(2, KEPT_MINUTES + 2):
        for number in range(ROUNDS_A_MINUTE):
            took = cpu_ms(lambda at=minute, now=rounds[(minute + number) % 8]: recent.add(at, now))  # type: ignore[misc]
            (within if number else new).append(took)
    print(f"{nodes:,} nodes: kept {kept / 2**20:.1f} MiB, {kept / nodes:.0f} bytes a node")
    print(f"a round of measurements {median(within):.1f} ms, the first of a minute {median(new):.1f} ms")
    return recent


def compare(recent: RecentUsage) -> None:
    from dashboard.nodes.viewmodels.infrastructure import node_row, row_fragment
    from dashboard.nodes.viewmodels.nodes import node_sums
    from dashboard.shell.fragments import render_fragment
    from grid.kube.objects import Node
    from grid.nodes.scaledown import ScaleDown

    kept = ScaleDown("unmanaged", "Kept: fixed size.")
    nodes = [decode(builders.node(f"node-{each}", cpu="16", memory="64Gi"), Node) for each in range(ROWS)]
    sums = [node_sums(node, {"cpu": 8_000_000}, Usage(4000, 2**34)) for node in nodes]
    samples: list[list[UsageSample]] = [recent.of(node.metadata.name) for node in nodes]

    def row(number: int, *, lines: bool) -> str:
        place = number % ROWS
        return render_fragment(row_fragment(node_row(sums[place], kept, samples[place] if lines else ())), now=NOW)

    row(0, lines=True)
    spent: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * RUNS):
        lines = number % 2 == 1
        spent[lines].append(cpu_ms(lambda at=number // 2, lines=lines: row(at, lines=lines)))  # type: ignore[misc]
    for lines in (False, True):
        page = "".join(row(number, lines=lines) for number in range(ROWS)).encode()
        words = "with the lines" if lines else "without"
        size = f"{len(page) / ROWS:.0f} bytes; {ROWS} rows {len(gzip.compress(page, 6)) / 1000:.1f} kB compressed"
        print(f"a changed row {words}: {median(spent[lines]):.2f} ms, {size}")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    compare(keep(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
