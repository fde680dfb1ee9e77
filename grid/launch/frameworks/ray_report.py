"""What a Ray cluster says of itself, read from four answers of its dashboard. Pure.

The state API knows nodes, tasks and actors; the autoscaler's monitor, which runs although Ray scales nothing here, knows what is
waited for and what each node has in use, every five seconds. What is missing in an answer counts as nothing; an answer that is
none at all raises FrameworkSilent.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from grid.launch.frameworks.base import ClusterReport, FrameworkSilent, WorkerPod, WorkerReport

_ALL = "limit=10000"  # the most that the state API gives
_EQUALS = "filter_predicates=%3D"
PATHS = (
    f"/api/v0/nodes?{_ALL}&filter_keys=state&{_EQUALS}&filter_values=ALIVE",
    f"/api/v0/tasks?{_ALL}&filter_keys=state&{_EQUALS}&filter_values=RUNNING",
    f"/api/v0/actors?{_ALL}&filter_keys=state&{_EQUALS}&filter_values=ALIVE",
    "/api/cluster_status",
)
# Of anything: more than a cluster can have, and little enough to count with. What a dashboard says is its user's word.
_MOST = 1e15
_LEAST_SHARE = 1e-9
# What Ray itself adds to the resources of a node: not what a task waits for.
_STORE = "objectStoreMemory"


class _Demand(NamedTuple):
    """So many of one shape are waited for; `shape` is resource -> amount."""

    shape: Mapping[str, float]
    number: int


def read(
    nodes: object,
    tasks: object,
    actors: object,
    status: object,
    *,
    workers: Sequence[WorkerPod],
    cpus: int,
    gpus: int,
) -> ClusterReport:
    """`cpus` and `gpus` are those of one worker."""
    node_of = {_text(row.get("node_ip")): _text(row.get("node_id")) for row in _rows(nodes, "nodes")}
    busy = _busy(_rows(tasks, "tasks"), _rows(actors, "actors"))
    load = _load(status)
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
    """Tasks and actors of each node. An actor counts once, whatever it is doing: it holds its state while it waits."""
    alone = (_text(task.get("node_id")) for task in tasks if not task.get("actor_id"))
    return Counter(alone) + Counter(_text(actor.get("node_id")) for actor in actors)


def _wanted(
    demands: Iterable[_Demand], in_use: Mapping[str, Any], joined: Iterable[str], *, cpus: int, gpus: int
) -> int:
    """Workers for what runs and for what waits, if packed without a gap. What no worker could ever take is not wanted: more
    workers would not help it."""
    room = {"CPU": float(cpus), "GPU": float(gpus)}
    wanted = 0.0
    for node in joined:
        wanted += max(_used(in_use, node, name) / amount for name, amount in room.items() if amount)
    for demand in demands:
        wanted += demand.number * _share(demand.shape, room)
    return math.ceil(round(wanted, 6))


def _share(shape: Mapping[str, float], room: Mapping[str, float]) -> float:
    """The part of a worker that one of this shape takes, 0 when it fits none. Two thirds of a worker take a whole one."""
    shares = [amount / room[name] if room.get(name) else math.inf for name, amount in shape.items() if name in room]
    largest = max(shares, default=0.0)
    return 0.0 if largest > 1 or not largest else 1 / math.floor(1 / max(largest, _LEAST_SHARE) + 1e-9)


def _demands(load: Mapping[str, Any]) -> Iterator[_Demand]:
    """Of tasks and actors, and of the bundles of placement groups."""
    yield from _shapes(load.get("resourceDemand"))
    for group in _pairs(load.get("pgDemand")):
        described, groups = group
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
    """`in_use` says [used, total] of each resource of each node."""
    pair = _dict(in_use.get(node)).get(resource)
    return _number(pair[0]) if isinstance(pair, list) and pair else 0.0


def _rows(answer: object, what: str) -> list[Mapping[str, Any]]:
    """The list inside an answer of the state API."""
    data = _dict(_data(answer, what).get("result"))
    rows = data.get("result")
    if not isinstance(rows, list):
        raise FrameworkSilent(f"Ray's dashboard did not list its {what}.")
    return [row for row in rows if isinstance(row, dict)]


def _load(status: object) -> Mapping[str, Any]:
    """Empty until the monitor has looked for the first time."""
    cluster = _dict(_data(status, "load").get("clusterStatus"))
    return _dict(cluster.get("loadMetricsReport"))


def _data(answer: object, what: str) -> Mapping[str, Any]:
    if not isinstance(answer, dict) or not answer.get("result"):
        said = _text(answer.get("msg")) if isinstance(answer, dict) else ""
        raise FrameworkSilent(f"Ray's dashboard did not tell its {what}{f': {said}' if said else ''}.")
    return _dict(answer.get("data"))


def _dict(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _number(found: object) -> float:
    """Nothing for what is no number, or none that can be counted."""
    return float(min(found, _MOST)) if isinstance(found, int | float) and 0 < found < math.inf else 0.0


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""
