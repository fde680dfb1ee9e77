"""What the benchmarks at size begin with: an embedded cluster full of simulated executions, and a web process that shows them.

The rows of the executions are made with `manage.py record_simulated`; no controller runs, so they stay as they are. The database is a
SQLite file of the benchmark's own, or the empty PostgreSQL database that DATABASE_URL names.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.embedded import process
from grid.sandbox.client import Client
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from grid.models import User

ROOT = Path(__file__).parents[1]
MANAGE = (sys.executable, str(ROOT / "manage.py"))
NAMESPACE = "compute-grid"
_LONGEST_SECONDS = 1200
_LONGEST_WAIT = re.compile(r"^compute_grid_loop_longest_wait_seconds (\S+)$", re.MULTILINE)


def add_size(parser: argparse.ArgumentParser, *, nodes: int = 20, pods: int = 500, churn: float = 0.0) -> None:
    parser.add_argument("--nodes", type=int, default=nodes, help="default: %(default)s")
    parser.add_argument("--pods", type=int, default=pods, help="default: %(default)s")
    parser.add_argument("--churn", type=float, default=churn, help="changes that happen anyway, a second: %(default)s")


def title(options: argparse.Namespace) -> str:
    load = os.getloadavg()[0]
    return f"{options.nodes:,} nodes, {options.pods:,} pods, {options.churn:g} other changes a second, load {load:.1f}"


@dataclass(frozen=True, slots=True)
class Population:
    """A cluster in which all pods stand."""

    folder: Path
    kubeconfig: Path
    cluster: psutil.Process


@dataclass(frozen=True, slots=True)
class Stage:
    """Django is set up in this process, on the database of the web process."""

    population: Population
    url: str
    metrics_url: str
    web: psutil.Process
    other_webs: Sequence[psutil.Process]  # on the same port

    def longest_wait(self) -> float:
        """Seconds that something due waited for the web process's loop, at most, within the last minute."""
        with urllib.request.urlopen(self.metrics_url, timeout=60) as answer:
            match = _LONGEST_WAIT.search(answer.read().decode())
        assert match is not None
        return float(match[1])

    def mebibytes(self) -> float:
        """Resident memory of the web process."""
        return float(self.web.memory_info().rss / 2**20)

    def cpu_seconds(self) -> float:
        times = self.web.cpu_times()
        return float(times.user + times.system)


@contextmanager
def population(options: argparse.Namespace) -> Iterator[Population]:
    """A cluster of that size, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="compute-grid-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        command = [*MANAGE, "sandbox", "--data", str(folder / "data"), "--simulated", "--port=0"]
        command += [f"--nodes={options.nodes}", f"--pods={options.pods}", f"--churn={options.churn}"]
        environment = {"GRID_DEMO": "1", "GRID_VAR": str(folder / "var")}
        with process(command, log=folder / "sandbox.log", env=environment) as cluster:
            kubeconfig = folder / "data" / "kubeconfig"
            _wait(kubeconfig.exists, cluster, folder / "sandbox.log")
            asyncio.run(_filled(kubeconfig, options.pods))
            yield Population(folder, kubeconfig, psutil.Process(cluster.pid))


@contextmanager
def stage(options: argparse.Namespace) -> Iterator[Stage]:
    """The web process is there when its caches are full, and ends with the block."""
    with population(options) as full:
        port = free_ports(2)
        url, folder = f"http://127.0.0.1:{port}", full.folder
        os.environ |= {
            "GRID_DEMO": "1",
            "GRID_VAR": str(folder / "var"),
            "GRID_SECRET_KEY": "benchmark",
            "GRID_LOG_LEVEL": "WARNING",
            "GRID_DASHBOARD_ORIGIN": url,
            "GRID_METRICS_PORT": str(port + 1),
            "KUBECONFIG": str(full.kubeconfig),
            "DJANGO_SETTINGS_MODULE": "grid.settings",
        }
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder / 'grid.sqlite3'}")
        for command in (["migrate", "--verbosity=0"], ["record_simulated", "--clusters"]):
            subprocess.run([*MANAGE, *command], check=True)
        import django

        django.setup()
        command = [*MANAGE, "web", f"--port={port}", "--share-port"]
        with ExitStack() as others, process(command, log=folder / "web.log") as web:
            other_webs = []
            for number in range(1, getattr(options, "webs", 1)):
                log, no_metrics = folder / f"web-{number}.log", {"GRID_METRICS_PORT": "0"}
                other = others.enter_context(process(command, log=log, env=no_metrics))
                other_webs.append(psutil.Process(other.pid))
            began = time.monotonic()
            metrics_url = f"http://127.0.0.1:{port + 1}/metrics"
            # Of the first process: another one on the port may be fresh before it.
            _wait(lambda: _answers(metrics_url) and _answers(f"{url}/freshz"), web, folder / "web.log")
            ready = Stage(full, url, metrics_url, psutil.Process(web.pid), other_webs)
            wait = ready.longest_wait() * 1000
            print(
                f"all lists read {time.monotonic() - began:.1f} s after its start; longest wait for the loop {wait:.0f} ms"
            )
            try:
                yield ready
            finally:
                _say_problems(folder / "web.log")


def people(number: int = 0, *, operators: int) -> tuple[Sequence["User"], Sequence["User"]]:
    """Those who own the most active executions, at most `number` of them (0: all), and so many new operators."""
    from django.contrib.auth.models import Group
    from django.db.models import Count, Q

    from grid.models import User

    active = Count("executions", filter=Q(executions__settled_at=None))
    owners = list(User.objects.annotate(count=active).filter(count__gt=0).order_by("-count", "pk"))
    group, _ = Group.objects.get_or_create(name="operators")
    names = [f"operator-{place}" for place in range(operators)]
    User.objects.bulk_create([User(username=name, password="!") for name in names], ignore_conflicts=True)
    made = list(User.objects.filter(username__in=names).order_by("pk"))
    group.user_set.add(*made)
    return owners[: number or None], made


def log_in(users: Sequence["User"]) -> list[str]:
    """The cookies' keys of one session for each of these, without a request."""
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.utils import timezone

    from grid.accounts.sessions import SessionStore, stored_key
    from grid.models import Session

    now = timezone.now()
    backend = settings.AUTHENTICATION_BACKENDS[-1]
    keys = [f"benchmark-{user.pk}" for user in users]
    sessions = []
    for key, user in zip(keys, users, strict=True):
        digest = user.get_session_auth_hash()
        data = {SESSION_KEY: str(user.pk), BACKEND_SESSION_KEY: backend, HASH_SESSION_KEY: digest}
        sessions.append(
            Session(
                session_key=stored_key(key),
                session_data=SessionStore().encode(data),
                expire_date=now + timedelta(days=1),
                created_at=now,
                seen_at=now,
                user=user,
                auth_hash=digest,
            )
        )
    Session.objects.bulk_create(sessions, ignore_conflicts=True)
    return keys


def cookie(key: str) -> str:
    from django.conf import settings

    return f"{settings.SESSION_COOKIE_NAME}={key}"


def _wait(is_there: Callable[[], bool], started: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while not is_there():
        assert started.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=60):
            return True
    except (urllib.error.URLError, OSError):
        return False


async def _filled(kubeconfig: Path, pods: int) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    async with Client.from_kubeconfig(kubeconfig) as client:
        while (await client.get("/sandbox/population"))["pods"] < pods * 0.99:
            assert time.monotonic() < deadline, "the population does not stand"
            await asyncio.sleep(0.5)


def _say_problems(log: Path) -> None:
    """What it warned of, but for not being fresh before its first lists."""
    problems = [line for line in log.read_text().splitlines() if " WARNING " in line or " ERROR " in line]
    lines = [line for line in problems if not line.endswith("/freshz")]
    if lines:
        print(f"the web process warned {len(lines)} times, first: {lines[0][:300]}")
