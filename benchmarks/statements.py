"""How long each statement of each page takes with a million ended executions.

    .venv/bin/python -m benchmarks.statements [ENDED] [ACTIVE]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names, filled as in `benchmarks.history`. An admin and the
owner of a project ask for every page by its address, and for the history with several filters, in this process and over one connection,
so PostgreSQL prepares what is asked again. Reported: each page whose statement took over 10 ms in the middle one of ROUNDS, with its median
and its longest time in milliseconds and how much of the longest this process computed; and the slowest of all. Aim: 20 ms.
"""

import logging
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

from benchmarks import history
from benchmarks.database import in_database

ROUNDS = 15  # PostgreSQL prepares what it was asked five times, and may choose another plan after five more
TOLD_FROM_MS = 10.0
FILTERS: tuple[dict[str, str], ...] = (
    *({}, {"user": "user-7"}, {"project": "p7", "kind": "workspace"}, {"tier": "t7"}, {"status": "failed"}),
    *({"text": "Run 77"}, {"text": "no such thing"}, {"text": "é"}),
    *({"before": "2025-06-01T00:00:00+00:00~c1"}, {"after": "2025-06-01T00:00:00+00:00~c1", "user": "user-8"}),
)
Times = dict[str, list[tuple[float, float]]]  # of each text: milliseconds by the clock, and of this process


def measure(ended: int, active: int) -> None:
    from django.db import connection

    from grid.runtime.executionrows import read_rows
    from tests.support.cluster import FakeCluster
    from tests.support.runtime import runtime_of, using_runtime

    logging.disable(logging.WARNING)  # pages that are not for somebody
    history.people()
    history.executions(0, active, is_ended=False)
    history.executions(active, history.FEW, is_ended=True)
    history.multiply_ended(ended // history.FEW - 1)
    print(f"{connection.vendor}: {ended:,} ended, {active:,} active; median and longest of {ROUNDS}, ms")
    runtime = runtime_of(FakeCluster())
    runtime.executions.replace(read_rows(history.NOW))
    pages, measured = 0, []
    with using_runtime(runtime):
        for who, client in clients().items():
            for address in addresses(active):
                times = asked(client, address)
                pages += bool(times)
                for sql, taken in times.items():
                    measured.append((statistics.median(wall for wall, _ in taken), max(taken), f"{who} {address}", sql))
    for median, (longest, own), page, sql in sorted(measured, reverse=True):
        if median < TOLD_FROM_MS:
            break
        print(f"{median:8.1f} {longest:8.1f} ({own:.1f}) {page}\n    {sql if '-v' in sys.argv else shortened(sql)}")
    slowest = max(measured, key=lambda statement: statement[1])
    print(f"{len(measured)} statements of {pages} pages; slowest median {max(measured)[0]:.1f}: {max(measured)[2]}")
    print(f"longest once {slowest[1][0]:.1f} ({slowest[1][1]:.1f}): {slowest[2]}\n    {shortened(slowest[3])}")


def asked(client: Any, address: str) -> Times:
    """Ask for the page, and return the times of its statements; none of a page that only takes what is sent, or is not there or not for
    this person."""
    from django.db import connection

    times: Times = {}
    status = client.get(address).status_code
    if status not in {200, 302}:
        assert status in {403, 404, 405}, (address, status)
        return times

    def watch(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        began, own = time.perf_counter(), time.thread_time()
        try:
            return execute(sql, *rest)
        finally:
            taken = (time.perf_counter() - began) * 1000, (time.thread_time() - own) * 1000
            times.setdefault(sql, []).append(taken)

    with connection.execute_wrapper(watch):
        for _ in range(ROUNDS):
            assert client.get(address).status_code == status
    return times


def shortened(sql: str) -> str:
    kind, _, wanted = " ".join(sql.replace('"', "").split()).partition(" FROM ")
    return f"{kind[:40]} ... FROM {wanted[:40]} ... {wanted[-80:]}"


def clients() -> dict[str, Any]:
    from django.conf import settings
    from django.test import Client

    from grid.models import User

    settings.ALLOWED_HOSTS = ["testserver"]
    clients_by_role = {"admin": Client(), "owner": Client()}
    clients_by_role["admin"].force_login(User.objects.create(username="ada", is_superuser=True))
    clients_by_role["owner"].force_login(User.objects.get(username="user-7"))
    return clients_by_role


def addresses(active: int) -> Iterator[str]:
    """Yield the address of each page, of executions one that runs and one that has ended, and those of the history, filtered."""
    from django.urls import reverse

    from dashboard.urls import urlpatterns

    ids = {"execution": ["e000000007", f"e{active + 7:09}"], "tier": ["t7"], "environment": ["lab"], "project": ["p7"]}
    for pattern in urlpatterns:
        name, wanted = str(pattern.name), pattern.pattern.converters
        for id in ids.get(name.partition("-")[0], ["none"]) if "id" in wanted else [""]:
            given = {"id": id, "entry_id": 1, "name": "n1", "namespace": "compute-grid"}
            yield reverse(name, kwargs={key: given[key] for key in wanted})
    for query in FILTERS:
        yield f"{reverse('executions')}?{urlencode({'show': 'ended', **query})}"


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument != "-v"]
    in_database(lambda: measure(*numbers, *(1_000_000, 2_000)[len(numbers) :]))
