"""How long every page of a running installation takes until its last byte, and how large it is when compressed.

    .venv/bin/python -m benchmarks.firstpaint PASSWORD [--base http://127.0.0.1:8000] [--user admin] [--rounds 9]

As one user, one request after the other, as browsers ask (gzip). The pages are those of the command palette, and one object of each kind
that a page of them links to. It exits with 1 when a page misses an aim: a median under 100 ms, and under 60 kB.
"""

import argparse
import asyncio
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator

import aiohttp

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_LINK = re.compile(r'href="(/[^"?#]*)')
_OBJECTS = {
    "/executions/": re.compile(r"/executions/[^/]+/"),
    "/infrastructure/": re.compile(r"/nodes/[^/]+/"),
    "/jobs/": re.compile(r"/jobs/[^/]+/"),
    "/workspaces/": re.compile(r"/workspaces/[^/]+/"),
    "/tiers/": re.compile(r"/tiers/(?!new/)[^/]+/"),
    "/environments/": re.compile(r"/environments/(?!new/)[^/]+/"),
    "/projects/": re.compile(r"/projects/(?!new/)[^/]+/"),
}
_POD = re.compile(r"/pods/[^/]+/[^/]+/")
MOST_MS, MOST_KB = 100, 60


async def main(options: argparse.Namespace) -> int:
    cookies = aiohttp.CookieJar(unsafe=True)
    # The bytes are counted as they were sent.
    wanted = {"Accept-Encoding": "gzip", "Accept": "text/html"}
    missed: list[str] = []
    async with (
        aiohttp.ClientSession(options.base, cookie_jar=cookies) as reading,
        # The bytes are counted as they were sent.
        aiohttp.ClientSession(options.base, cookie_jar=cookies, auto_decompress=False, headers=wanted) as measuring,
    ):
        await log_in(reading, options)
        print("| page | median ms | slowest ms | kB sent |\n|---|---|---|---|")
        async for page in addresses(reading):
            taken, size = await measure(measuring, page, options.rounds)
            median = statistics.median(taken)
            if median >= MOST_MS or size >= MOST_KB:
                missed.append(page)
            print(f"| {page} | {median:.0f} | {max(taken):.0f} | {size:.1f} |", flush=True)
    print(f"These miss an aim: {', '.join(missed) or 'none'}")
    return int(bool(missed))


async def log_in(session: aiohttp.ClientSession, options: argparse.Namespace) -> None:
    token = _TOKEN.search(await text(session, "/login/"))
    assert token is not None, "The page of the login has no form."
    form = {"username": options.user, "password": options.password, "csrfmiddlewaretoken": token[1]}
    async with session.post("/login/", data=form, headers={"Origin": options.base}) as answer:
        assert answer.url.path != "/login/", "The login was refused."


async def addresses(session: aiohttp.ClientSession) -> AsyncIterator[str]:
    """Yield the path of each page; those of objects are looked for when they are due, because a demo's executions end soon."""
    links = dict.fromkeys(_LINK.findall(await text(session, "/palette/?options=1")))
    # Without a text the palette lists the user's own executions too.
    pages = [page for page in links if not any(pattern.fullmatch(page) for pattern in _OBJECTS.values())]
    for page in pages:
        yield page
    for page, pattern in _OBJECTS.items():
        if page in pages and (linked := await first(session, page, pattern)):
            yield linked
            if page == "/infrastructure/" and (pod := await first(session, linked, _POD)):
                yield pod


async def first(session: aiohttp.ClientSession, page: str, pattern: re.Pattern[str]) -> str:
    """Return the first page of an object that the page links to and that is still there."""
    for link in _LINK.findall(await text(session, page)):
        if pattern.fullmatch(link):
            async with session.get(link) as answer:
                if answer.status == 200:
                    return str(link)
    return ""


async def text(session: aiohttp.ClientSession, page: str) -> str:
    async with session.get(page) as answer:
        answer.raise_for_status()
        return await answer.text()


async def measure(session: aiohttp.ClientSession, page: str, rounds: int) -> tuple[list[float], float]:
    """Return the milliseconds of each request after the first, and the kB of the last."""
    taken, size = list[float](), 0
    for _ in range(rounds + 1):
        began = time.perf_counter()
        async with session.get(page, allow_redirects=False) as answer:
            size = len(await answer.read())
        taken.append((time.perf_counter() - began) * 1000)
        assert answer.status == 200, f"{page}: {answer.status}"
    return taken[1:], size / 1000


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("password")
    parser.add_argument("--base", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="admin")
    parser.add_argument("--rounds", type=int, default=9)
    sys.exit(asyncio.run(main(parser.parse_args())))
