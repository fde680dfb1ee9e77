"""The annotations of each worker pod: its deletion cost and the report of what it holds. Pure.

Kubernetes first deletes pods without a node or not ready, and then those with the lowest cost: workers that have not joined or that their
head has lost, then idle ones, those with fewer results first, because their drain is short; then busy ones by their tasks. Kubernetes asks
to change the cost rarely: numbers are rounded, and less or more of the same is written four times a minute at most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from grid.clusters.frameworks.base import ClusterReport, WorkerReport
from grid.core.labels import KEYS, POD_DELETION_COST
from grid.kube.objects import Pod

HOLD_SECONDS = 15.0
ABSENT = -1
_TASK = 1_000_000
_MOST_TASKS = 2_000  # together with the bytes below one task, stays under 2**31, Kubernetes' limit
_MEBIBYTE = 2**20
_LARGEST = 10**18


@dataclass(frozen=True, slots=True)
class Notes:
    """The annotations of one worker; `holds` is True when there is anything to lose."""

    cost: str
    report: str
    holds: bool

    @property
    def annotations(self) -> dict[str, str]:
        return {POD_DELETION_COST: self.cost, KEYS.worker_report: self.report}


def changed(
    report: ClusterReport, workers: Sequence[Pod], written_at: Mapping[str, float], *, now: float
) -> list[tuple[Pod, Notes]]:
    """Return the pods to annotate now. `written_at` is when each pod, by uid, was last annotated."""
    due = []
    for pod in workers:
        notes = notes_on(report.workers.get(pod.metadata.name))
        before = pod.metadata.annotations
        if notes.annotations.items() <= before.items():
            continue
        held = before.get(POD_DELETION_COST, str(ABSENT)) not in (str(ABSENT), "0")
        if notes.holds != held or now - written_at.get(pod.metadata.uid, float("-inf")) >= HOLD_SECONDS:
            due.append((pod, notes))
    return due


@lru_cache(maxsize=1024)  # most workers are idle
def notes_on(worker: WorkerReport | None) -> Notes:
    """Return the annotations for the report of a worker; None is one that the framework does not know."""
    if worker is None:
        return Notes(str(ABSENT), _json(0, 0), holds=False)
    # A head runs user code, so it may report any number.
    tasks, held = (_rounded(min(max(0, count), _LARGEST)) for count in (worker.tasks, worker.bytes_held))
    return Notes(str(deletion_cost(tasks, held)), _json(tasks, held), holds=bool(tasks or held))


def deletion_cost(tasks: int, bytes_held: int) -> int:
    """Return the cost. Any task weighs more than any amount of results: a drain moves results, but a task starts over."""
    return min(tasks, _MOST_TASKS) * _TASK + min(-(-bytes_held // _MEBIBYTE), _TASK - 1)


def _rounded(count: int) -> int:
    step: int = 10 ** max(0, len(str(count)) - 2)  # two significant digits stay
    return count // step * step


def _json(tasks: int, held: int) -> str:
    return msgspec.json.encode({"tasks": tasks, "bytes": held}).decode()
