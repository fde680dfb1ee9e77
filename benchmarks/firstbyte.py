"""How long a page takes to its first byte and to its last, and how large it is, with several filters.

    python -m benchmarks.scale pages [--nodes 20] [--pods 500] [--ended 0] [--rounds 10]

As an operator and as the person with the most executions, one request after the other, as browsers ask (gzip). `--ended` puts so many
ended executions of other people into the history. Aims: first byte under 200 ms, under 100 kB.
"""

import argparse
import asyncio
import gzip
import statistics
import time
from collections.abc import Mapping
from urllib.parse import urlencode

import aiohttp

from benchmarks.stage import Stage, add_size, cookie, log_in, people, stage, title

_HEADERS = {"Accept-Encoding": "gzip", "Accept": "text/html"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_size(parser)
    parser.add_argument("--ended", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10)


def main(options: argparse.Namespace) -> None:
    with stage(options) as ready:
        if options.ended:
            from benchmarks import history

            history.people()
            history.executions(0, options.ended, is_ended=True)
        owners, operators = people(1, operators=1)
        keys = log_in([operators[0], owners[0]])
        pages = addresses(owners[0].username, options.ended > 0)
        print(f"{title(options)}, {options.ended:,} ended; median and slowest of {options.rounds} requests")
        print(f"{'':60} | {'who':9} | {'first byte ms':>15} | {'last byte ms':>15} | {'kB sent':>8} | {'unpacked':>8}")
        asyncio.run(
            measure(ready, dict(zip(("operator", "owner"), map(cookie, keys), strict=True)), pages, options.rounds)
        )


def addresses(owner: str, has_ended: bool) -> Mapping[str, str]:
    """Who asks for each."""
    from grid.models import Execution

    def some(**wanted: str) -> str:
        return Execution.objects.filter(state="running", **wanted).order_by("pk").values_list("pk", flat=True)[0]

    first = Execution.objects.filter(state="running", node_name__gt="").order_by("pk")[0]
    filters: list[dict[str, str]] = [
        {},
        {"user": owner},
        {"text": "train"},
        {"kind": "cluster", "sort": "-memory"},
        {"tier": first.tier_id, "cpu": "1"},
        {"status": "trouble"},
        {"node": first.node_name},
        {"page": "3"},
    ]
    paths = dict.fromkeys(("/queue/", "/overview/"), "operator")  # first: what they show is read for the first who asks
    paths |= {f"/executions/?{urlencode(query)}": "operator" for query in filters}
    filters = [{}, {"pool": "cpu"}, {"state": "removable", "sort": "-cpu"}, {"text": "gpu"}, {"page": "2"}]
    paths |= {f"/infrastructure/?{urlencode(query)}": "operator" for query in filters}
    paths |= {f"/executions/{some(kind=kind)}/": "operator" for kind in ("workspace", "cluster")}
    paths |= {f"/nodes/{first.node_name}/": "operator", "/": "owner", "/executions/?sort=name": "owner"}
    if has_ended:
        filters = [{}, {"user": "user-7"}, {"text": "Run 77"}, {"project": "p7", "kind": "workspace"}]
        paths |= {f"/executions/?{urlencode({'show': 'ended', **query})}": "operator" for query in filters}
    return paths


async def measure(ready: Stage, cookies: Mapping[str, str], pages: Mapping[str, str], rounds: int) -> None:
    worst = 0.0, 0
    async with aiohttp.ClientSession(auto_decompress=False) as http:
        for address, who in pages.items():
            first, last, sent, unpacked = [], [], 0, 0
            for _ in range(rounds + 1):
                began = time.perf_counter()
                async with http.get(ready.url + address, headers={**_HEADERS, "Cookie": cookies[who]}) as answer:
                    first.append((time.perf_counter() - began) * 1000)
                    body = await answer.read()
                    last.append((time.perf_counter() - began) * 1000)
                    assert answer.status == 200 and answer.url.path == address.partition("?")[0], (
                        answer.status,
                        answer.url,
                    )
                    sent = len(body)
                    unpacked = len(gzip.decompress(body)) if answer.headers.get("Content-Encoding") == "gzip" else sent
            cold = first.pop(0)
            last.pop(0)
            worst = max(worst[0], cold, *first), max(worst[1], sent)
            times = " | ".join(f"{statistics.median(each):7.0f} {max(each):7.0f}" for each in (first, last))
            print(
                f"{address:60} | {who:9} | {times} | {sent / 1000:8.1f} | {unpacked / 1000:8.0f} | asked first {cold:.0f} ms",
                flush=True,
            )
    wait = ready.longest_wait() * 1000
    print(
        f"slowest first byte {worst[0]:.0f} ms, largest {worst[1] / 1000:.0f} kB; longest wait for the loop {wait:.0f} ms"
    )
