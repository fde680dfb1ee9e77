"""How long `/healthz` waits while pages show hostile text, beside harmless text of the same size.

    python -m benchmarks.hostiletext [--rounds N] [CLASS ...]

Starts a web process with a database and repositories of its own, no cluster behind it, and asks for each page of
`tests.edge.hostiletext` while `/healthz` is asked every 50 ms: once with the hostile text, once with the harmless, in turn. Of each round
the longest answer counts, and of all rounds the shortest of these, because what else the machine does is in some of them only.
"""

import argparse
import tempfile
from pathlib import Path

from tests.edge.hostiletext import HARMLESS, LINES, Asker, common_pages, health_of, pages, repositories_in, store_for
from tests.edge.process import WebProcess, web_process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="*", metavar="CLASS", help=f"of {', '.join(LINES)} (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with web_process(folder, **repositories_in(folder)) as web:
            store_for(web)
            asker = Asker(web)
            harmless = pages(HARMLESS)
            for asked in (*harmless.values(), *common_pages().values()):  # caches are filled, and workers started
                _longest(web, asker, asked)
            for name in options.classes or [name for name in LINES if name != HARMLESS]:
                _print(
                    name, [_compared(web, asker, what, *both, options.rounds) for what, both in _pairs(name).items()]
                )
            if not options.classes:
                for what, asked in common_pages().items():
                    _print(what, [_compared(web, asker, what, asked, ("GET", "/"), options.rounds)])


Asked = tuple[str, str]  # method and path


def _pairs(name: str) -> dict[str, tuple[Asked, Asked]]:
    """Return each page with hostile and with harmless text."""
    return {what: (asked, pages(HARMLESS)[what]) for what, asked in pages(name).items()}


def _compared(
    web: WebProcess, asker: Asker, what: str, hostile: Asked, harmless: Asked, rounds: int
) -> tuple[float, float, str]:
    """Return the waits in seconds, and the page."""
    times = [(_longest(web, asker, hostile), _longest(web, asker, harmless)) for _ in range(rounds)]
    return min(slow for slow, _ in times), min(other for _, other in times), what


def _longest(web: WebProcess, asker: Asker, asked: Asked) -> float:
    with health_of(web.port) as health:
        status = asker.ask(*asked)
    assert status == 200, f"{asked}: {status}"
    return health.longest


def _print(name: str, times: list[tuple[float, float, str]]) -> None:
    hostile, harmless, what = max(times)
    most_harmless = max(other for _, other, _ in times)
    print(
        f"{name:18} {hostile * 1000:5.0f} ms ({what}; harmless {harmless * 1000:.0f})"
        f"   all pages harmless {most_harmless * 1000:.0f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
