"""Limits a cluster's workers so that those which are ending keep their slots until they are gone.

A ReplicaSet does not count pods that are ending, which may take the whole drain time: a cluster that is scaled down and up again meanwhile
would have both. So while workers end, the autoscaler (without one: the Deployment) may only ask for as many as the slots leave. That is
level-triggered and never removes a worker: the bound is never below the present replicas, unless the owner lowers it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from grid.clusters import objects
from grid.clusters.frameworks.base import cluster_of
from grid.core.labels import APP_COMPONENT, WORKER
from grid.executions.context import Context
from grid.executions.ledger import LedgerRecord
from grid.executions.spec import ExecutionSpec
from grid.kube.objects import Pod

# Between two reads of the replicas, and so between two changes of the bounds.
CHECK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Workers:
    """The pods that use a slot: those that stay, and those that are ending. A finished pod (evicted, for example) stays listed for long,
    but uses none."""

    staying: int = 0
    ending: int = 0


@dataclass(frozen=True, slots=True)
class _Check:
    at: float
    replicas: int
    ending: int
    bounds: tuple[int, int]


def count(pods: Sequence[Pod]) -> Workers:
    workers = (pod for pod in pods if pod.metadata.labels.get(APP_COMPONENT) == WORKER)
    using = [pod for pod in workers if pod.status.phase not in ("Failed", "Succeeded")]
    ending = sum(pod.metadata.deletion_timestamp is not None for pod in using)
    return Workers(len(using) - ending, ending)


def bounds(minimum: int, maximum: int, *, slots: int, replicas: int, ending: int) -> tuple[int, int]:
    """Return the minimum and maximum to set in Kubernetes, for a cluster that holds `slots` and has `replicas` now."""
    most = max(1, min(maximum, max(replicas, slots - 1 - ending)))
    return min(minimum, most), most


class WithinSlots:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._checks: dict[str, _Check] = {}

    async def apply(
        self, row: LedgerRecord, spec: ExecutionSpec, workers: Workers
    ) -> tuple[ExecutionSpec, float | None]:
        """Return the spec with the sizes that are allowed now, and the seconds until the next check, None for none."""
        cluster = cluster_of(spec)
        if not workers.ending:
            self._checks.pop(row.id, None)
            return spec, None
        context, last, now = self._context, self._checks.get(row.id), self._context.monotonic()
        is_early = last is not None and now - last.at < CHECK_SECONDS
        if last is not None and is_early:
            at, replicas, ending = last.at, last.replicas, last.ending
        else:
            at, replicas = now, await objects.worker_replicas(context.api, row.id, context.namespace)
            ending = workers.ending
        minimum, maximum = cluster.workers_minimum, cluster.workers_maximum
        least, most = bounds(minimum, maximum, slots=row.slots, replicas=replicas, ending=ending)
        self._checks[row.id] = _Check(at, replicas, ending, (least, most))
        # Check once more after a change: the autoscaler may have scaled up at the same moment, and must not remove these workers.
        has_changed = is_early or last is None or last.bounds != (least, most)
        return spec.with_workers(least, most), CHECK_SECONDS if has_changed else None

    def forget(self, execution_id: str) -> None:
        self._checks.pop(execution_id, None)
