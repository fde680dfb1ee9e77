"""Reads a running Spark cluster's report: from the master its workers and applications, from each application's driver its tasks.

Each driver is asked through the master's own proxy, so that only the head's address has to be known. Drivers are user code: their answers
are bounded in size and time, validated, and may be missing; then the master still knows where their executors are.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from grid.clusters.frameworks.base import (
    UNREADABLE,
    ClusterReport,
    FrameworkSilent,
    WorkerPod,
    WorkerReport,
    body_of,
    parsed,
)
from grid.core.decoding import prepared
from grid.core.translation import gettext as _

_MOST_APPLICATIONS = 20
_WHOLE_SECONDS = 5.0  # when the session has no limit of its own
_DRIVERS_SHARE = 0.7  # share of the whole time; a driver that hangs must not make the master seem silent
T = TypeVar("T")


class MasterWorker(msgspec.Struct, frozen=True):
    """A worker in the master's list; workers that are gone stay in it for a while."""

    host: str
    state: str
    coresused: int = 0


class Application(msgspec.Struct, frozen=True):
    id: str


class Master(msgspec.Struct, frozen=True):
    """The answer of `/json/` of the master."""

    workers: tuple[MasterWorker, ...]
    activeapps: tuple[Application, ...] = ()


class Executor(msgspec.Struct, frozen=True, rename="camel"):
    """An entry in the `executors` of a driver; the driver itself is among them."""

    id: str
    host_port: str
    active_tasks: int = 0
    memory_used: int = 0
    disk_used: int = 0
    total_shuffle_write: int = 0

    @property
    def host(self) -> str:
        return self.host_port.rpartition(":")[0]


class Stage(msgspec.Struct, frozen=True, rename="camel"):
    num_tasks: int = 0
    num_active_tasks: int = 0
    num_complete_tasks: int = 0

    @property
    def pending(self) -> int:
        return max(self.num_tasks - self.num_active_tasks - self.num_complete_tasks, 0)


@dataclass(frozen=True, slots=True)
class Driver:
    executors: tuple[Executor, ...]
    stages: tuple[Stage, ...]


async def ask(http: aiohttp.ClientSession, url: str, cores: int, workers: Sequence[WorkerPod]) -> ClusterReport:
    """Return the cluster's report. Raise FrameworkSilent when the master does not answer in time."""
    limit = http.timeout.total or _WHOLE_SECONDS
    started = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(limit):
            master = await _get(http, parsed(f"{url}/json/"), Master)
    except TimeoutError as error:
        raise FrameworkSilent(_("The Spark master did not answer within {limit:g} seconds.", limit=limit)) from error
    spent = asyncio.get_running_loop().time() - started
    seconds = max((limit - spent) * _DRIVERS_SHARE, 0)
    known = await asyncio.gather(
        *(_driver(http, url, application.id, seconds) for application in master.activeapps[:_MOST_APPLICATIONS])
    )
    return report(master, known, cores, workers)


def report(master: Master, drivers: Sequence[Driver | None], cores: int, workers: Sequence[WorkerPod]) -> ClusterReport:
    """Combine the answers by the workers' addresses; None stands for a silent driver."""
    answered = [driver for driver in drivers if driver is not None]
    executors = [executor for driver in answered for executor in driver.executors if executor.id != "driver"]
    at: defaultdict[str, list[Executor]] = defaultdict(list)
    for executor in executors:
        at[executor.host].append(executor)
    joined = {worker.host: worker for worker in master.workers if worker.state == "ALIVE"}
    silent = len(answered) < len(drivers)
    held = {pod.name: _held(joined[pod.address], at[pod.address], silent) for pod in workers if pod.address in joined}
    pending = sum(stage.pending for driver in answered for stage in driver.stages)
    tasks = pending + sum(max(executor.active_tasks, 0) for executor in executors)
    wanted = -(-tasks // max(cores, 1))  # rounded up in integers: a driver may report a number that no float can hold
    if silent:
        wanted = max(wanted, sum(1 for worker in joined.values() if worker.coresused > 0))
    return ClusterReport(workers=held, pending_tasks=pending, wanted_workers=wanted)


def _held(worker: MasterWorker, executors: Sequence[Executor], silent: bool) -> WorkerReport:
    tasks = sum(max(executor.active_tasks, 0) for executor in executors)
    if silent:
        # Executors are here and their driver is silent, so the worker counts as busy.
        tasks = max(tasks, worker.coresused)
    held = sum(executor.memory_used + executor.disk_used + executor.total_shuffle_write for executor in executors)
    return WorkerReport(tasks=tasks, bytes_held=max(held, 0))


async def _driver(http: aiohttp.ClientSession, url: str, application: str, seconds: float) -> Driver | None:
    identifier = quote(application, safe="")
    api = f"{url}/proxy/{identifier}/api/v1/applications/{identifier}"
    try:
        async with asyncio.timeout(seconds):
            executors, stages = await asyncio.gather(
                _get(http, f"{api}/executors", tuple[Executor, ...]),
                _get(http, f"{api}/stages?status=active", tuple[Stage, ...]),
            )
    except (TimeoutError, FrameworkSilent):
        return None
    return Driver(executors, stages)


async def _get(http: aiohttp.ClientSession, url: str | URL, kind: type[T]) -> T:
    try:
        async with http.get(url, allow_redirects=False) as response:
            if response.status != 200:
                raise FrameworkSilent(_("Spark answered with status {status}.", status=response.status))
            body = await body_of(response, too_long=_("Spark's answer is longer than {size} MiB."))
    except TimeoutError as error:
        raise FrameworkSilent(_("The Spark master did not answer in time.")) from error
    except (aiohttp.ClientError, OSError) as error:
        why = str(error) or type(error).__name__
        raise FrameworkSilent(_("The Spark master cannot be reached: {error}.", error=why)) from error
    try:
        return msgspec.json.decode(body, type=prepared(kind))
    except UNREADABLE as error:
        raise FrameworkSilent(_("Spark answered something else than expected: {error}.", error=error)) from error
