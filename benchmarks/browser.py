"""What a browser takes for live pages, while rows that they show change.

    python -m benchmarks.scale browser [--nodes 20] [--pods 500] [--per-second 20] [--changes 300]

One operator's Executions and Infrastructure, one after the other, in a Chromium without a GPU. Counted is its main thread's time, by
the DevTools protocol's `Performance.getMetrics`; cluster, web process and browser share the machine.
"""

import argparse
import asyncio
from typing import Any

from benchmarks.marks import Arrivals, Cluster, connect
from benchmarks.screens import Screen, change_rows, opened
from benchmarks.stage import Stage, add_size, cookie, log_in, people, stage, title
from tests.support.chromium import ARGUMENTS, MISSING, find_chromium

_SETTLE_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_size(parser)
    parser.add_argument("--per-second", type=float, default=20.0)
    parser.add_argument("--changes", type=int, default=300)


def main(options: argparse.Namespace) -> None:
    with stage(options) as ready:
        _, [operator] = people(operators=1)
        [key] = log_in([operator])
        print(f"{title(options)}; {options.per_second:g} changes of rows a second; shares of the browser's main thread")
        print("page           | all | scripts | styles and layout | messages a second | web process, of a core")
        asyncio.run(measure(ready, key, options))


async def measure(ready: Stage, key: str, options: argparse.Namespace) -> None:
    from django.conf import settings
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        path = find_chromium()
        assert path, MISSING
        browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        context = await browser.new_context(viewport={"width": 1440, "height": 900})
        await context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": ready.url}])
        for name in ("executions", "infrastructure"):
            await measure_page(name, context, ready, key, options)


async def measure_page(name: str, context: Any, ready: Stage, key: str, options: argparse.Namespace) -> None:
    page, messages = await context.new_page(), list[None]()
    page.on("websocket", lambda socket: socket.on("framereceived", lambda _: messages.append(None)))
    devtools = await context.new_cdp_session(page)
    await devtools.send("Performance.enable")
    await page.goto(f"{ready.url}/{name}/")
    server, http = connect(ready.population.kubeconfig)
    screens, arrivals = [Screen(name, "", cookie(key))], Arrivals()
    cluster = Cluster(server, http, ready.population.kubeconfig)
    async with http, opened(screens, ready, arrivals):
        await asyncio.sleep(_SETTLE_SECONDS)
        before, had = await _seconds(devtools), len(messages)
        load = await change_rows(
            screens, ready, cluster, arrivals, per_second=options.per_second, count=options.changes
        )
        after = await _seconds(devtools)
    took = {kind: (after[kind] - before[kind]) / load.seconds for kind in after}
    styled = took["RecalcStyleDuration"] + took["LayoutDuration"]
    print(
        f"{name:<14} | {took['TaskDuration']:.0%} | {took['ScriptDuration']:.0%} | {styled:.0%} | "
        f"{(len(messages) - had) / load.seconds:.0f} | {load.cpu_seconds / load.seconds:.0%}",
        flush=True,
    )
    await page.close()


async def _seconds(devtools: Any) -> dict[str, float]:
    """What the main thread has spent by now, by kind."""
    metrics = (await devtools.send("Performance.getMetrics"))["metrics"]
    return {metric["name"]: metric["value"] for metric in metrics if metric["name"].endswith("Duration")}
