"""Ray: its head, its workers, and their reports.

`ray start --block` runs in both; the head takes no tasks. Only ports that a Service leads to are fixed, and of those Ray's own state (the
GCS) always listens on all addresses of its machine: where pods share one machine, as on the embedded cluster, its port inside must differ
from cluster to cluster, and from its Service's. docs/frameworks.md has the whole picture.

A report is read from four answers of the dashboard. The state API knows nodes, tasks and actors; the autoscaler's monitor, which runs
although Ray scales nothing here, the pending demand and each node's use, every five seconds. What an answer lacks counts as nothing; one
that is not usable at all raises FrameworkSilent.
"""

import asyncio
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from grid.clusters.frameworks.base import (
    LOCAL_PATH,
    POD_IP,
    POD_NAME,
    ClusterReport,
    FrameworkSilent,
    Port,
    Program,
    WorkerPod,
    WorkerReport,
    body_of,
    cluster_of,
    http_probe,
    parsed,
)
from grid.core.quantity import millicores, whole
from grid.core.translation import gettext as _
from grid.executions.spec import ExecutionSpec, TierSpec

GCS_PORT = 6379
UI_PORT = 8265
CLIENT_PORT = 10001
# Below the ports that Linux gives out by itself and those (23000-23999) that Ray's client server uses for its sessions.
_GCS_PORTS_INSIDE = range(11000, 23000)
_STORE_SHARE_OF_MEMORY = 0.3  # Ray's own default
_STORE_SHARE_OF_SHARED_MEMORY = 0.9
_SMALLEST_STORE = 80 * 2**20  # Ray refuses less than 75 MiB
_ASK_SECONDS = 10
_LONGEST_ANSWER = 32 * 2**20  # ten thousand tasks, the most that it lists
_NODE = Path(__file__).with_name("ray_node.py").read_text(encoding="utf-8")
_DRAIN = Path(__file__).with_name("ray_drain.py").read_text(encoding="utf-8")
# Set on every node: no statistics to Ray's makers, metrics of dashboard and autoscaler on any free port (the fixed ones are open on all
# addresses), an object store on disk, which is slow, rather than none when the tier has no shared memory, and no drain on SIGTERM: the
# preStop hook has drained the node already, and a head has nowhere to go. Ray's own start timeouts, ten and sixty seconds, are too short
# on a machine that starts several nodes at once.
# gRPC's fork support sometimes kills children that Ray's client server is about to turn into other programs ("Starting Ray client server
# failed"); nothing here needs it.
_VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE": "1",
    "DASHBOARD_METRIC_PORT": "0",
    "AUTOSCALER_METRIC_PORT": "0",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    "RAY_raylet_start_wait_time_s": "40",
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "300",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
# As in KubeRay: a head that is replaced loses everything, so it gets ten minutes.
_LIVENESS = http_probe("/api/gcs_healthz", UI_PORT, period=5, failures=120, delay=30)


class Ray:
    name = "ray"
    ui_port = UI_PORT
    strips_prefix = True
    calls_back = False

    def head(self, spec: ExecutionSpec) -> Program:
        """Return a program without CPUs and GPUs: tasks would compete for memory with the cluster's state, whose loss loses all."""
        inside = gcs_port_inside(spec.id)
        start = (
            "--head",
            f"--port={inside}",
            f"--dashboard-host={POD_IP}",
            f"--dashboard-port={UI_PORT}",
            f"--ray-client-server-port={CLIENT_PORT}",
            "--num-cpus=0",
            "--num-gpus=0",
            *_for_every_node(cluster_of(spec).head_tier),
        )
        return Program(
            command=_inside("start", LOCAL_PATH, f":{inside}", "ray", "start", *start),
            ports=(Port("gcs", GCS_PORT, inside), Port("dashboard", UI_PORT), Port("client", CLIENT_PORT)),
            variables=_VARIABLES,
            readiness=_probe(f"gcs:{UI_PORT}", f"port:{CLIENT_PORT}"),
            liveness=_LIVENESS,
        )

    def worker(self, spec: ExecutionSpec, head_address: str) -> Program:
        tier = spec.tier
        start = (
            f"--address={head_address}:{GCS_PORT}",
            f"--num-cpus={cpus_of(tier)}",
            f"--num-gpus={tier.gpus}",
            *_for_every_node(tier),
        )
        return Program(
            command=_inside("start", LOCAL_PATH, f"{head_address}:{UI_PORT}", "ray", "start", *start),
            ports=(),
            variables=_VARIABLES,
            readiness=_probe(),
            pre_stop=_inside("drain", _DRAIN, f"{head_address}:{GCS_PORT}", str(cluster_of(spec).drain_seconds)),
        )

    def client_variables(self, spec: ExecutionSpec, head_address: str) -> Mapping[str, str]:
        """Return what `ray.init()` reads, the API server's address for `ray job submit`, and the names that Domino's users know."""
        return {
            "RAY_ADDRESS": f"ray://{head_address}:{CLIENT_PORT}",
            "RAY_API_SERVER_ADDRESS": f"http://{head_address}:{UI_PORT}",
            "RAY_HEAD_SERVICE_HOST": head_address,
            "RAY_HEAD_SERVICE_PORT": str(CLIENT_PORT),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    async def ask(
        self, http: aiohttp.ClientSession, head_ip: str, spec: ExecutionSpec, workers: Sequence[WorkerPod]
    ) -> ClusterReport:
        try:
            async with asyncio.timeout(http.timeout.total or _ASK_SECONDS):
                answers = [await _get(http, f"http://{head_ip}:{UI_PORT}{path}") for path in PATHS]
        except TimeoutError as error:
            raise FrameworkSilent(_("Ray's dashboard did not answer in time.")) from error
        except aiohttp.ClientError as error:
            raise FrameworkSilent(_("Ray's dashboard did not answer: {error}.", error=error)) from error
        except (ValueError, RecursionError) as error:
            raise FrameworkSilent(_("Ray's dashboard gave an answer that is not JSON.")) from error
        return read_report(*answers, workers=workers, cpus=cpus_of(spec.tier), gpus=spec.tier.gpus)


def gcs_port_inside(cluster_id: str) -> int:
    """Return the port on which a cluster's GCS listens; always the same for a cluster, so that a replaced head is found again."""
    return _GCS_PORTS_INSIDE[zlib.crc32(cluster_id.encode()) % len(_GCS_PORTS_INSIDE)]


def cpus_of(tier: TierSpec) -> int:
    """Return the worker's CPUs for Ray, which counts whole ones: rounded down, so that no worker promises more than it has."""
    return max(1, millicores(tier.cores) // 1000)


def store_bytes(tier: TierSpec) -> int:
    """Return the size of the object store: most of the tier's shared memory, or Ray's usual share of the memory."""
    if tier.shared_memory:
        return max(_SMALLEST_STORE, int(whole(tier.shared_memory) * _STORE_SHARE_OF_SHARED_MEMORY))
    return max(_SMALLEST_STORE, int(whole(tier.memory) * _STORE_SHARE_OF_MEMORY))


def _for_every_node(tier: TierSpec) -> tuple[str, ...]:
    """Return the options of head and workers. Port 0 without a range means any free port, so that several nodes may share a machine."""
    store = store_bytes(tier)
    return (
        "--block",
        f"--node-ip-address={POD_IP}",
        f"--node-name={POD_NAME}",
        "--min-worker-port=0",
        "--max-worker-port=0",
        f"--object-store-memory={store}",
        f"--memory={max(0, whole(tier.memory) - store)}",
        "--disable-usage-stats",
        "--log-color=false",
    )


def _inside(*arguments: str) -> tuple[str, ...]:
    # Isolated: the working directory is the project's, and a file types.py in it must not take Python's place.
    return ("python", "-I", "-c", _NODE, *arguments)


def _probe(*more: str) -> Mapping[str, object]:
    return {
        "exec": {"command": list(_inside("probe", *more))},
        "initialDelaySeconds": 5,
        "periodSeconds": 5,
        "timeoutSeconds": 5,
        "failureThreshold": 3,
    }


async def _get(http: aiohttp.ClientSession, url: str) -> object:
    async with http.get(parsed(url), allow_redirects=False, raise_for_status=True) as answer:
        too_long = _("Ray's dashboard's answer is longer than {size} MiB.")
        body: object = json.loads(await body_of(answer, too_long=too_long, longest=_LONGEST_ANSWER))
        return body


_ALL = "limit=10000"  # the most that the state API gives
_EQUALS = "filter_predicates=%3D"
PATHS = (
    f"/api/v0/nodes?{_ALL}&filter_keys=state&{_EQUALS}&filter_values=ALIVE",
    f"/api/v0/tasks?{_ALL}&filter_keys=state&{_EQUALS}&filter_values=RUNNING",
    f"/api/v0/actors?{_ALL}&filter_keys=state&{_EQUALS}&filter_values=ALIVE",
    "/api/cluster_status",
)
# More than a cluster can have of anything, and small enough to count with: a dashboard is user code, so it may report any number.
_MOST = 1e15
_LEAST_SHARE = 1e-9
# A resource that Ray itself adds to a node; no task waits for it.
_STORE = "objectStoreMemory"


class _Demand(NamedTuple):
    """A number of pending requests of one shape; `shape` is resource -> amount."""

    shape: Mapping[str, float]
    number: int


def read_report(
    nodes: object, tasks: object, actors: object, status: object, *, workers: Sequence[WorkerPod], cpus: int, gpus: int
) -> ClusterReport:
    """Return the report; `cpus` and `gpus` are those of one worker."""
    node_of = {_text(row.get("node_ip")): _text(row.get("node_id")) for row in _rows(nodes, _("nodes"))}
    busy = _busy(_rows(tasks, _("tasks")), _rows(actors, _("actors")))
    # The monitor's report is empty until it has run for the first time.
    load = _dict(_dict(_data(status, _("load")).get("clusterStatus")).get("loadMetricsReport"))
    in_use = _dict(load.get("usageByNode"))
    joined = {worker: node_of[worker.address] for worker in workers if worker.address in node_of}
    demands = list(_demands(load))
    return ClusterReport(
        workers={
            worker.name: WorkerReport(busy[node], int(_used(in_use, node, _STORE))) for worker, node in joined.items()
        },
        pending_tasks=sum(demand.number for demand in demands),
        wanted_workers=_wanted(demands, in_use, joined.values(), cpus=cpus, gpus=gpus),
    )


def _busy(tasks: Iterable[Mapping[str, Any]], actors: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return the number of tasks and actors of each node. An actor counts once, whatever it does: it holds its state while it waits."""
    alone = (_text(task.get("node_id")) for task in tasks if not task.get("actor_id"))
    return Counter(alone) + Counter(_text(actor.get("node_id")) for actor in actors)


def _wanted(
    demands: Iterable[_Demand], in_use: Mapping[str, Any], joined: Iterable[str], *, cpus: int, gpus: int
) -> int:
    """Return the workers for running and pending work, if packed without a gap, but for requests that no worker can ever take."""
    room = {"CPU": float(cpus), "GPU": float(gpus)}
    running = sum(max(_used(in_use, node, name) / amount for name, amount in room.items() if amount) for node in joined)
    pending = sum(demand.number * _share(demand.shape, room) for demand in demands)
    return math.ceil(round(running + pending, 6))


def _share(shape: Mapping[str, float], room: Mapping[str, float]) -> float:
    """Return the part of a worker that one request of this shape takes, 0 when it fits none. Two thirds of a worker take a whole one."""
    shares = [amount / room[name] if room.get(name) else math.inf for name, amount in shape.items() if name in room]
    largest = max(shares, default=0.0)
    return 0.0 if largest > 1 or not largest else 1 / math.floor(1 / max(largest, _LEAST_SHARE) + 1e-9)


def _demands(load: Mapping[str, Any]) -> Iterator[_Demand]:
    yield from _shapes(load.get("resourceDemand"))
    for described, groups in _pairs(load.get("pgDemand")):
        for bundle in _shapes(_dict(described).get("bundles")):
            yield _Demand(bundle.shape, bundle.number * groups)


def _shapes(listed: object) -> Iterator[_Demand]:
    for shape, count in _pairs(listed):
        yield _Demand({str(name): _number(amount) for name, amount in _dict(shape).items()}, count)


def _pairs(listed: object) -> Iterator[tuple[object, int]]:
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, list) and len(item) == 2:
            yield item[0], int(_number(item[1]))


def _used(in_use: Mapping[str, Any], node: str, resource: str) -> float:
    """Return the amount in use; `in_use` has [used, total] of each resource of each node."""
    pair = _dict(in_use.get(node)).get(resource)
    return _number(pair[0]) if isinstance(pair, list) and pair else 0.0


def _rows(answer: object, what: str) -> list[Mapping[str, Any]]:
    rows = _dict(_data(answer, what).get("result")).get("result")
    if not isinstance(rows, list):
        raise FrameworkSilent(_("Ray's dashboard did not list its {what}.", what=what))
    return [row for row in rows if isinstance(row, dict)]


def _data(answer: object, what: str) -> Mapping[str, Any]:
    known = _dict(answer)
    if not known.get("result"):
        if answered := _text(known.get("msg")):
            raise FrameworkSilent(_("Ray's dashboard did not tell its {what}: {answer}.", what=what, answer=answered))
        raise FrameworkSilent(_("Ray's dashboard did not tell its {what}.", what=what))
    return _dict(known.get("data"))


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float:
    """Return 0 for what is no positive finite number, and cap what is too large to count with."""
    return float(min(value, _MOST)) if isinstance(value, int | float) and 0 < value < math.inf else 0.0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
