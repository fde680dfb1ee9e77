"""Reads a Ray cluster's report from four answers of its dashboard. Pure.

The state API knows nodes, tasks and actors; the autoscaler's monitor, which runs although Ray scales nothing here, the pending demand and
each node's use, every five seconds. What an answer lacks counts as nothing; one that is not usable at all raises FrameworkSilent.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from grid.clusters.frameworks.base import ClusterReport, FrameworkSilent, WorkerPod, WorkerReport
from grid.core.translation import gettext as _

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


def read(
    nodes: object, tasks: object, actors: object, status: object, *, workers: Sequence[WorkerPod], cpus: int, gpus: int
) -> ClusterReport:
    """Return the report; `cpus` and `gpus` are those of one worker."""
    node_of = {_text(row.get("node_ip")): _text(row.get("node_id")) for row in _rows(nodes, _("nodes"))}
    busy = _busy(_rows(tasks, _("tasks")), _rows(actors, _("actors")))
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
    """Return the number of tasks and actors of each node. An actor counts once, whatever it does: it holds its state while it waits."""
    alone = (_text(task.get("node_id")) for task in tasks if not task.get("actor_id"))
    return Counter(alone) + Counter(_text(actor.get("node_id")) for actor in actors)


def _wanted(
    demands: Iterable[_Demand], in_use: Mapping[str, Any], joined: Iterable[str], *, cpus: int, gpus: int
) -> int:
    """Return the workers for running and pending work, if packed without a gap. Requests that no worker can ever take do not count: more
    workers would not help."""
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
    data = _dict(_data(answer, what).get("result"))
    rows = data.get("result")
    if not isinstance(rows, list):
        raise FrameworkSilent(_("Ray's dashboard did not list its {what}.", what=what))
    return [row for row in rows if isinstance(row, dict)]


def _load(status: object) -> Mapping[str, Any]:
    """Return the monitor's report; empty until it has run for the first time."""
    cluster = _dict(_data(status, _("load")).get("clusterStatus"))
    return _dict(cluster.get("loadMetricsReport"))


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
