"""How long `/healthz` waits at most while pages show hostile text, beside harmless text of the same size.

    python -m benchmarks.hostiletext [--rounds N]

Starts a web process with a database and repositories of its own, no cluster behind it, and asks for each page of
`tests.edge.hostiletext` while `/healthz` is asked every 50 ms. Prints, for each class of text, the longest answer of each page.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.edge.hostiletext import HARMLESS, LINES, Asker, common_pages, health_of, pages, repositories_in, store_for
from tests.edge.process import WebProcess, web_process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="asks for each page so often (default: %(default)s)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with web_process(folder, **repositories_in(folder)) as web:
            store_for(web)
            asker = Asker(web)
            asked = {name: pages(name) for name in LINES} | {"all classes": common_pages()}
            for paths in (asked[HARMLESS], asked["all classes"]):  # caches are filled, and workers started
                _measured(web, asker, paths, 1)
            with health_of(web) as health:
                time.sleep(5)
            print(f"{'nothing asked':20} {health.longest * 1000:5.0f} ms")
            for name, paths in asked.items():
                found = _measured(web, asker, paths, rounds)
                worst = max(found, key=lambda what: found[what])
                rest = "  ".join(f"{what} {wait * 1000:.0f}" for what, wait in found.items())
                print(f"{name:20} {found[worst] * 1000:5.0f} ms ({worst})   {rest}", flush=True)


def _measured(web: WebProcess, asker: Asker, paths: dict[str, tuple[str, str]], rounds: int) -> dict[str, float]:
    """Return the longest answer of `/healthz` by page, in seconds."""
    found: dict[str, float] = {}
    for what, asked in paths.items():
        with health_of(web) as health:
            for _ in range(rounds):
                status = asker.ask(*asked)
                assert status == 200, f"{asked}: {status}"
        found[what] = health.longest
    return found


if __name__ == "__main__":
    main()
