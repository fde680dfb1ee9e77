"""Dask: its head (the scheduler), its workers, and their reports. For distributed 2026.8.

The UI and everything that is read over HTTP lie under the cluster's own path, so the proxy passes the path through as it is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import aiohttp
import msgspec

from grid.clusters.frameworks import base
from grid.core.decoding import prepared
from grid.core.origins import BEGIN_PATH
from grid.core.quantity import millicores, whole
from grid.core.translation import gettext as _
from grid.executions.spec import ExecutionSpec

_SCHEDULER = base.Port("scheduler", 8786)
_UI = base.Port("ui", 8787)
_WORKER = base.Port("worker", 8788)
_NANNY = base.Port("nanny", 8789)
_WORKER_HTTP = base.Port("http", 8790)
# Without -P Python looks for modules in the project's folder first, and a `dask.py` there would run instead of Dask.
_PYTHON = ("python", "-P", "-c")
_HEAD = Path(__file__).with_name("dask_head.py").read_text()
_WORK = Path(__file__).with_name("dask_worker.py").read_text()
_DRAIN = Path(__file__).with_name("dask_drain.py").read_text()
_REPORT = "json/compute-grid.json"
_SCRATCH = {"DASK_TEMPORARY_DIRECTORY": base.LOCAL_PATH}
# Each worker has a nanny, which restarts it when a task crashes it or a client asks to, and needs memory itself.
_NANNY_BYTES = 128 * 2**20


class Dask:
    name = "dask"
    ui_port = _UI.number
    strips_prefix = False
    calls_back = False

    def head(self, spec: ExecutionSpec) -> base.Program:
        return base.Program(
            command=(
                *(*_PYTHON, _HEAD, "scheduler"),
                *("--host", base.POD_IP, "--port", str(_SCHEDULER.number)),
                *("--dashboard-address", f"{base.POD_IP}:{_UI.number}"),
                # Omitted at the root: Bokeh makes two slashes of one.
                *(("--dashboard-prefix", spec.base_url) if spec.base_url != "/" else ()),
            ),
            ports=(_SCHEDULER, _UI),
            readiness=base.http_probe(f"{spec.base_url}health", _UI.number, period=2, failures=15),
            # Five minutes: a scheduler that receives a large graph answers late, and restarting it loses everything.
            liveness=base.http_probe(f"{spec.base_url}health", _UI.number, period=20, failures=15),
            variables=_SCRATCH,
        )

    def worker(self, spec: ExecutionSpec, head_address: str) -> base.Program:
        limit = whole(spec.tier.memory_limit)
        # Enough to use all cores, a part of a core included: else a worker could never reach its target.
        threads = max(1, math.ceil(millicores(spec.tier.cores_limit) / 1000))
        memory = max(limit - _NANNY_BYTES, limit // 2)
        return base.Program(
            command=(
                *(*_PYTHON, _WORK, "worker", "--name", base.POD_NAME, "--host", base.POD_IP),
                *("--worker-port", str(_WORKER.number), "--nanny-port", str(_NANNY.number)),
                *("--dashboard-address", f"{base.POD_IP}:{_WORKER_HTTP.number}", "--no-dashboard"),
                *("--nthreads", str(threads), "--memory-limit", str(memory)),
                *(("--resources", f"GPU={spec.tier.gpus}") if spec.tier.gpus else ()),
            ),
            ports=(_WORKER, _NANNY, _WORKER_HTTP),
            # Two minutes: a task that holds Python's lock makes its worker answer late, and of all workers those that are not ready
            # are ended first when the cluster shrinks.
            readiness=base.http_probe("/health", _WORKER_HTTP.number, period=2, failures=60),
            variables={
                "DASK_SCHEDULER_ADDRESS": _address(head_address),
                # The container's limit ends a worker that fills its memory, visibly; its nanny would do so unseen, a moment before.
                "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False",
                **_SCRATCH,
            },
            pre_stop=(*_PYTHON, _DRAIN, str(_WORKER.number), str(base.cluster_of(spec).drain_seconds)),
        )

    def client_variables(self, spec: ExecutionSpec, head_address: str) -> Mapping[str, str]:
        return {
            "DASK_SCHEDULER_ADDRESS": _address(head_address),
            "DASK_SCHEDULER_SERVICE_HOST": head_address,
            "DASK_SCHEDULER_SERVICE_PORT": str(_SCHEDULER.number),
            # The dashboard's address that a client shows in a notebook: the page at which the proxy begins to let a browser in.
            "DASK_DISTRIBUTED__DASHBOARD__LINK": f"{spec.address}{BEGIN_PATH}",
        }

    async def ask(
        self, http: aiohttp.ClientSession, head_ip: str, spec: ExecutionSpec, workers: Sequence[base.WorkerPod]
    ) -> base.ClusterReport:
        try:
            url = f"http://{head_ip}:{_UI.number}{spec.base_url}{_REPORT}"
            async with http.get(base.parsed(url), allow_redirects=False, raise_for_status=True) as answer:
                too_long = _("Dask's scheduler's answer is longer than {size} MiB.")
                report = msgspec.json.decode(
                    await base.body_of(answer, too_long=too_long), type=prepared(base.ClusterReport)
                )
        except TimeoutError as error:
            raise base.FrameworkSilent(_("Dask's scheduler did not answer in time.")) from error
        except aiohttp.ClientError as error:
            raise base.FrameworkSilent(_("Dask's scheduler cannot be asked: {error}.", error=error)) from error
        except base.UNREADABLE as error:
            raise base.FrameworkSilent(
                _("Dask's scheduler answered something unexpected: {error}.", error=error)
            ) from error
        ours = {worker.name for worker in workers}
        return replace(report, workers={name: worker for name, worker in report.workers.items() if name in ours})


def _address(head_address: str) -> str:
    return f"tcp://{head_address}:{_SCHEDULER.number}"
