"""Dask: its head (the scheduler) and workers, and what they say of themselves. For distributed 2026.8.

The UI and everything that is asked over HTTP lie under the cluster's own path, so the proxy hands it through as it is.
"""

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from grid.launch.frameworks.base import (
    LOCAL_PATH,
    POD_IP,
    POD_NAME,
    ClusterReport,
    FrameworkSilent,
    Port,
    Program,
    WorkerPod,
    WorkerReport,
)
from grid.launch.spec import ExecutionSpec, TierSpec
from grid.quantity import millicores, whole

_SCHEDULER = Port("scheduler", 8786)
_UI = Port("ui", 8787)
_WORKER = Port("worker", 8788)
_NANNY = Port("nanny", 8789)
_WORKER_HTTP = Port("http", 8790)
_DRAIN = Path(__file__).with_name("dask_drain.py")
# Each worker has a nanny, which starts it anew when a task crashes it or fills its memory, and needs memory itself.
_NANNY_BYTES = 128 * 2**20
# What a worker has taken and not finished; results and copies of others' results are no work.
_OPEN = frozenset({"executing", "long-running", "ready", "constrained", "waiting", "resumed"})
_METRIC = re.compile(r'^dask_scheduler_(desired_workers|tasks{state="(?:queued|no-worker)"}) (\S+)$', re.MULTILINE)


class _Metrics(msgspec.Struct):
    task_counts: dict[str, int] = {}
    managed_bytes: int = 0


class _Worker(msgspec.Struct):
    name: str | int
    metrics: _Metrics = msgspec.field(default_factory=_Metrics)


class _Identity(msgspec.Struct):
    workers: dict[str, _Worker]


class _Counts(msgspec.Struct):
    desired_workers: int
    unrunnable: int


class Dask:
    """Implements `Framework`."""

    name = "dask"
    ui_port = _UI.number
    strips_prefix = False

    def head(self, spec: ExecutionSpec) -> Program:
        return Program(
            # `-m` puts the project's folder on the path, as a notebook's kernel does: the scheduler unpickles graphs.
            command=(
                *("python", "-m", "dask", "scheduler"),
                *("--host", POD_IP, "--port", str(_SCHEDULER.number)),
                *("--dashboard-address", f"{POD_IP}:{_UI.number}", "--dashboard-prefix", spec.base_url),
            ),
            ports=(_SCHEDULER, _UI),
            readiness=_health(f"{spec.base_url}health", _UI, period=2, failures=15),
            # Five minutes: a scheduler that takes in a large graph answers late, and restarting it loses everything.
            liveness=_health(f"{spec.base_url}health", _UI, period=20, failures=15),
            variables=_variables(spec),
        )

    def worker(self, spec: ExecutionSpec, head_address: str) -> Program:
        return Program(
            command=(
                *("python", "-m", "dask", "worker", "--name", POD_NAME, "--host", POD_IP),
                *("--worker-port", str(_WORKER.number), "--nanny-port", str(_NANNY.number)),
                *("--dashboard-address", f"{POD_IP}:{_WORKER_HTTP.number}", "--no-dashboard"),
                *("--nthreads", str(_threads(spec.tier)), "--memory-limit", str(_memory(spec.tier))),
                *(("--resources", f"GPU={spec.tier.gpus}") if spec.tier.gpus else ()),
            ),
            ports=(_WORKER, _NANNY, _WORKER_HTTP),
            # Two minutes: a task that holds Python's lock makes its worker answer late, and of all workers those that are not ready
            # are ended first when the cluster shrinks.
            readiness=_health("/health", _WORKER_HTTP, period=2, failures=60),
            variables={"DASK_SCHEDULER_ADDRESS": _address(head_address), **_variables(spec)},
            pre_stop=("python", "-c", _DRAIN.read_text(), str(_WORKER.number), str(_drain_seconds(spec))),
        )

    def client_variables(self, spec: ExecutionSpec, head_address: str) -> Mapping[str, str]:
        return {
            "DASK_SCHEDULER_ADDRESS": _address(head_address),
            "DASK_SCHEDULER_SERVICE_HOST": head_address,
            "DASK_SCHEDULER_SERVICE_PORT": str(_SCHEDULER.number),
            # What a client shows as the address of its dashboard: the page that the browser reaches.
            "DASK_DISTRIBUTED__DASHBOARD__LINK": f"{spec.base_url}status",
        }

    async def ask(
        self, http: aiohttp.ClientSession, head_ip: str, spec: ExecutionSpec, workers: Sequence[WorkerPod]
    ) -> ClusterReport:
        base = f"http://{head_ip}:{_UI.number}{spec.base_url}"
        try:
            identity, (wanted, pending) = await asyncio.gather(_identity(http, base), _demand(http, base))
        except TimeoutError as error:
            raise FrameworkSilent("Dask's scheduler did not answer in time.") from error
        except aiohttp.ClientError as error:
            raise FrameworkSilent(f"Dask's scheduler cannot be asked: {error}.") from error
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
            raise FrameworkSilent(f"Dask's scheduler answered something unexpected: {error}.") from error
        ours = {worker.name for worker in workers}
        joined = {str(worker.name): _report(worker.metrics) for worker in identity.workers.values()}
        known = {name: found for name, found in joined.items() if name in ours}
        return ClusterReport(known, pending_tasks=pending, wanted_workers=wanted)


def _address(head_address: str) -> str:
    return f"tcp://{head_address}:{_SCHEDULER.number}"


def _variables(spec: ExecutionSpec) -> dict[str, str]:
    return {"DASK_TEMPORARY_DIRECTORY": LOCAL_PATH, "DASK_DISTRIBUTED__DASHBOARD__LINK": f"{spec.base_url}status"}


def _health(path: str, port: Port, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": port.number},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _threads(tier: TierSpec) -> int:
    """Enough to use all cores, also part of one: else a worker could never reach its target."""
    return max(1, math.ceil(millicores(tier.cores_limit) / 1000))


def _memory(tier: TierSpec) -> int:
    """What Dask spills, pauses and restarts at parts of."""
    limit = whole(tier.memory_limit)
    return max(limit - _NANNY_BYTES, limit // 2)


def _drain_seconds(spec: ExecutionSpec) -> int:
    return spec.cluster.drain_seconds if spec.cluster else 0


def _report(metrics: _Metrics) -> WorkerReport:
    tasks = sum(count for state, count in metrics.task_counts.items() if state in _OPEN)
    return WorkerReport(tasks, bytes_held=metrics.managed_bytes)


async def _identity(http: aiohttp.ClientSession, base: str) -> _Identity:
    async with http.get(f"{base}json/identity.json") as answer:
        answer.raise_for_status()
        return msgspec.json.decode(await answer.read(), type=_Identity)


async def _demand(http: aiohttp.ClientSession, base: str) -> tuple[int, int]:
    """Workers that Dask would like to have, by its own rule for adaptive clusters, and tasks that it has given to none."""
    async with http.get(f"{base}metrics") as answer:
        if answer.status == 501:  # an image without prometheus-client
            return await _demand_by_counting(http, base)
        answer.raise_for_status()
        found = {name: int(float(value)) for name, value in _METRIC.findall(await answer.text())}
    wanted = found.pop("desired_workers", None)
    if wanted is None:
        raise ValueError("its metrics do not say how many workers it wants")
    return wanted, sum(found.values())


async def _demand_by_counting(http: aiohttp.ClientSession, base: str) -> tuple[int, int]:
    """The same from a page that looks at every task and knows nothing of queued ones."""
    async with http.get(f"{base}json/counts.json") as answer:
        answer.raise_for_status()
        counts = msgspec.json.decode(await answer.read(), type=_Counts)
    return counts.desired_workers, counts.unrunnable
