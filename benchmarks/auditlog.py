"""What the page of the audit log costs with a million entries, and what sealing and verifying them takes.

    .venv/bin/python -m benchmarks.auditlog [ENTRIES]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names. Entries are of 200 people, one of whom wrote half
of them, about ten kinds of object by six actions. Reported: the median and the slowest of 20 calls, in milliseconds.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from benchmarks.database import in_database

CALLS = 20
AT_ONCE = 10_000
NOW = datetime(2026, 11, 1, tzinfo=UTC)
QUERIES = {
    "newest": {},
    "who, half of all": {"who": "person-0"},
    "who, one in 400": {"who": "person-7"},
    "nobody": {"who": "nobody"},
    "kind": {"kind": "kind-3"},
    "action": {"action": "unlocked"},
    "days": {"since": "2026-03-01", "until": "2026-03-02"},
    "who and kind": {"who": "person-0", "kind": "kind-3"},
    "who and kind, none": {"who": "person-7", "kind": "kind-none"},
    "kind and action, none": {"kind": "kind-3", "action": "none"},
    "text": {"text": "name-77"},
    "text, nowhere": {"text": "nowhere"},
    "who, kind, action, text, days": {
        "who": "person-0",
        "kind": "kind-3",
        "action": "changed",
        "text": "nowhere",
        "since": "2026-02-01",
    },
}


def measure(entries: int) -> None:
    from django.db import connection

    from grid.audit.sealing import seal, verify

    fill(entries)
    print(f"{connection.vendor}: {entries:,} entries; median and slowest of {CALLS} calls, ms")
    for before in ("", "2026-05-05T05:05:05+00:00~1"):
        for name, query in QUERIES.items():
            print(f"{name + (', half way' if before else ''):45}{'{:8.1f} {:8.1f}'.format(*timed(query, before))}")
    begun, sealed = time.perf_counter(), 0
    while sealed < min(entries, 20_000):
        sealed += seal(NOW)
    print(f"sealed {sealed / (time.perf_counter() - begun):,.0f} entries a second")
    begun = time.perf_counter()
    print(f"verified {verify().count / (time.perf_counter() - begun):,.0f} entries a second")


def fill(entries: int) -> None:
    from django.db import connection

    from grid.models import AuditEntry

    rng = random.Random(1)
    for start in range(0, entries, AT_ONCE):
        AuditEntry.objects.bulk_create(
            AuditEntry(
                at=NOW - timedelta(days=360) * (1 - number / entries),
                actor_name=f"person-{rng.choice((0, rng.randrange(200)))}",
                action=rng.choice(("created", "changed", "archived", "restored", "reset", "unlocked")),
                object_type=f"kind-{rng.randrange(10)}",
                object_id=f"object-{rng.randrange(5000)}",
                object_name=f"name-{rng.randrange(5000)}",
                changes={"cores": ["1", str(number)], "memory": ["1Gi", "2Gi"]},
            )
            for number in range(start, min(start + AT_ONCE, entries))
        )
    with connection.cursor() as cursor:
        if (
            connection.vendor == "postgresql"
        ):  # as its own autovacuum does after a while; SQLite is left without statistics
            cursor.execute("ANALYZE grid_auditentry")


def timed(query: dict[str, str], before: str) -> tuple[float, float]:
    from dashboard.audit.viewmodel import AuditView
    from dashboard.audit.views import read_audit

    view = AuditView.parse(query | {"before": before})
    return _median(lambda: read_audit(view))


def _median(work: Callable[[], object]) -> tuple[float, float]:
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        work()
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times), max(times)


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    in_database(lambda: measure(*(numbers or [1_000_000])))
