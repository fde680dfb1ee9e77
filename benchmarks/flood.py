"""What a flood of one person's schedules costs another: logins, launches and starts without the flood and with it, in one run.

    .venv/bin/python -m benchmarks.flood [--schedules 3000] [--seconds 120] [--unlimited]
    .venv/bin/python -m tests.support.postgresql .venv/bin/python -m benchmarks.flood    (on PostgreSQL)

It starts a whole Compute Grid in a folder of its own. Somebody who contributes to a project has so many jobs, each with a schedule that
is due every minute. For so many seconds they are paused, then they are all due at once, and again each minute; before each of the two the
grid has ten seconds to come to rest. All the while another person logs in anew, launches a job, and stops it once it has its slot, again
and again. A start is the time from the launch's row to its slot. With --unlimited the limit of scheduled runs of one person in a minute
is lifted, so that only turns and rests protect others. Aim: no p99 more than 1.5 times as long. What failed is counted, and should be 0.
"""

import argparse
import os
import statistics
import tempfile
import time
import urllib.error
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.end_to_end.grid import Grid, Session
from tests.support.postgresql import VARIABLE

T = TypeVar("T")
_PAUSE_SECONDS = 0.5
_SETTLING_SECONDS = 10.0
_STARTS_WITHIN = 120.0
_JOB = {"kind": "job", "project": "churn", "environment": "python-script", "tier": "tiny", "command": "true"}


class FloodedGrid(Grid):
    """On the PostgreSQL database that the environment names, if it does."""

    def environment(self) -> dict[str, str]:
        url = os.environ.get(VARIABLE)
        return super().environment() | ({"DATABASE_URL": url} if url else {})


@dataclass
class Figures:
    """Seconds of what succeeded, and how often something failed."""

    logins: list[float] = field(default_factory=list)
    launches: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    failed: int = 0


def set_up(grid: Grid) -> None:
    os.environ.update(grid.environment())
    os.environ["DJANGO_SETTINGS_MODULE"] = "grid.settings"
    import django

    django.setup()


def make_flood(count: int) -> None:
    """Store jobs of a contributor with paused schedules, past the limits that would refuse them."""
    from django.utils import timezone

    from grid.models import Environment, HardwareTier, Job, Project, Schedule, User

    now = timezone.now()
    owner = User.objects.create_user("flooder")
    project = Project.objects.get(pk="churn")
    project.members.add(owner, through_defaults={"role": "contributor"})
    jobs = Job.objects.bulk_create(
        Job(
            id=f"flood{number}",
            title=f"Flood {number}",
            owner=owner,
            project=project,
            environment=Environment.objects.get(pk=_JOB["environment"]),
            tier=HardwareTier.objects.get(pk=_JOB["tier"]),
            command="true",
        )
        for number in range(count)
    )
    Schedule.objects.bulk_create(Schedule(job=job, cron="* * * * *", time_zone="UTC", paused_at=now) for job in jobs)


def begin_flood() -> None:
    from django.utils import timezone

    from grid.models import Schedule

    now = timezone.now()
    Schedule.objects.filter(job__owner__username="flooder").update(paused_at=None, next_at=now, set_at=now)


def measure(grid: Grid, seconds: float) -> Figures:
    figures, deadline = Figures(), time.monotonic() + seconds
    while time.monotonic() < deadline:
        session = timed(figures, figures.logins, partial(Session, grid, "scientist"))
        if session is not None:
            id = timed(figures, figures.launches, partial(session.launch, _JOB | {"title": "Not of the flood"}))
            if id is not None:
                wait_for_slot(figures, id)
        time.sleep(_PAUSE_SECONDS)
    return figures


def timed(figures: Figures, times: list[float], work: Callable[[], T]) -> T | None:
    began = time.perf_counter()
    try:
        done = work()
    except (urllib.error.URLError, OSError, AssertionError):
        figures.failed += 1
        return None
    times.append(time.perf_counter() - began)
    return done


def wait_for_slot(figures: Figures, id: str) -> None:
    from django.utils import timezone

    from grid.executions.stopping import request_stop
    from grid.models import Execution

    deadline = time.monotonic() + _STARTS_WITHIN
    while (execution := Execution.objects.get(pk=id)).slots_reserved_at is None:
        if time.monotonic() > deadline:
            figures.failed += 1
            return
        time.sleep(0.05)
    figures.starts.append((execution.slots_reserved_at - execution.requested_at) / timedelta(seconds=1))
    request_stop(execution, by="scientist", now=timezone.now())


def say(quiet: Figures, flood: Figures) -> None:
    for name, before, after in (
        ("login", quiet.logins, flood.logins),
        ("launch", quiet.launches, flood.launches),
        ("start", quiet.starts, flood.starts),
    ):
        parts = [f"{quantile(before, q):6.0f} {quantile(after, q):6.0f}" for q in (50, 99)]
        ratio = quantile(after, 99) / quantile(before, 99)
        print(
            f"{name:8} p50 {parts[0]} ms   p99 {parts[1]} ms   ratio of p99 {ratio:4.2f}   of {len(before)}, {len(after)}"
        )
    print(f"failed: {quiet.failed} without the flood, {flood.failed} with it")


def quantile(seconds: Sequence[float], percent: int) -> float:
    """Milliseconds; the highest where there are fewer than a hundred."""
    return statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1] * 1000


def run_counts() -> str:
    from django.utils import timezone

    from grid.models import JobRun, Schedule

    due = Schedule.objects.filter(next_at__lte=timezone.now()).count()
    return (
        f"{JobRun.objects.filter(schedule__isnull=False).count():,} runs of the flood asked for, {due:,} schedules due"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--unlimited", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compute-grid-benchmark-") as folder:
        grid = FloodedGrid(Path(folder) / "var")
        grid.start()
        try:
            set_up(grid)
            if options.unlimited:
                from grid.configuration import SCHEDULED_RUNS_PER_MINUTE
                from grid.models import ConfigRecord

                ConfigRecord.objects.create(key=SCHEDULED_RUNS_PER_MINUTE.key, value="100000")
            make_flood(options.schedules)
            measure(grid, _SETTLING_SECONDS)
            quiet = measure(grid, options.seconds)
            begin_flood()
            time.sleep(_SETTLING_SECONDS)
            flood = measure(grid, options.seconds)
            print(
                f"{options.schedules:,} schedules, load {os.getloadavg()[0]:.1f}; without the flood, and with it: {run_counts()}"
            )
            say(quiet, flood)
        finally:
            grid.interrupt()


if __name__ == "__main__":
    main()
