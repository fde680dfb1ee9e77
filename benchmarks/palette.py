"""What one search of the command palette costs, with many active and a million ended executions.

    .venv/bin/python -m benchmarks.palette [ENDED] [ACTIVE]

The database is a SQLite file, or the empty PostgreSQL database that DATABASE_URL names, with the executions of `benchmarks.history`; an
operator searches all of them, a person those of one project. Reported: milliseconds of 20 searches, fastest and median, and of those
what is read from the database, which is measured without the active ones.
"""

import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta

from benchmarks.database import in_database
from benchmarks.history import CALLS, FEW, NOW, executions, multiply_ended, people

# They match everything, two thirds, one execution, and nothing.
TEXTS = ("r", "run 1", "e000000001", "zzz")


def measure(ended: int, active: int) -> None:
    from django.db import connection

    from dashboard.palette.views import PaletteCaches, find
    from dashboard.shell.access import Role, Viewer
    from grid.models import User
    from grid.runtime.executionrows import read_rows

    people()
    executions(0, active, is_ended=False)
    executions(active, FEW, is_ended=True)
    multiply_ended(ended // FEW - 1)
    rows = read_rows(NOW + timedelta(days=1))
    person = User.objects.get(username="user-7").pk
    print(f"{connection.vendor}: {ended:,} ended, {active:,} active; fastest and median of {CALLS} searches, ms")
    print(f"{'':20}{'operator':>19}{'database':>19}{'person':>19}{'database':>19}")
    for text in TEXTS:
        line = f"{text:20}"
        for role, id in ((Role.OPERATOR, 0), (Role.PRACTITIONER, person)):
            viewer = Viewer(id, role, role)
            seen = [row for row in rows if role is Role.OPERATOR or id in row.project_member_ids]
            for searched in (seen, []):
                times = timed(lambda: find(viewer, text, PaletteCaches(searched, [])))  # noqa: B023 - called at once
                line += "{:9.1f} {:9.1f}".format(*times)
        print(line)


def timed(search: Callable[[], object]) -> tuple[float, float]:
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        search()
        times.append((time.perf_counter() - began) * 1000)
    return min(times), statistics.median(times)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    in_database(lambda: measure(*numbers, *(1_000_000, 20_000)[len(numbers) :]))
