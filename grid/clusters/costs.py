"""The annotations of each worker pod: its deletion cost and the report of what it holds. Pure.

Kubernetes first deletes pods without a node or not ready, and then those with the lowest cost: workers that have not joined or that their
head has lost, then idle ones, those with fewer results first, because their drain is short; then busy ones by their tasks. Kubernetes asks
to change the cost rarely: numbers are rounded, and less or more of the same is written four times a minute at most.
"""

from collections.abc import Mapping, Sequence
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


def changed(
    report: ClusterReport, workers: Sequence[Pod], written_at: Mapping[str, float], *, now: float
) -> list[tuple[Pod, Mapping[str, str]]]:
    """Return the pods to annotate now, with their annotations. `written_at` is when each pod, by uid, was last annotated."""
    due = []
    for pod in workers:
        notes = notes_on(report.workers.get(pod.metadata.name))
        before = pod.metadata.annotations
        if notes.items() <= before.items():
            continue
        has_turned = _holds_anything(notes) != _holds_anything(before)
        if has_turned or now - written_at.get(pod.metadata.uid, float("-inf")) >= HOLD_SECONDS:
            due.append((pod, notes))
    return due


@lru_cache(maxsize=1024)  # most workers are idle
def notes_on(worker: WorkerReport | None) -> Mapping[str, str]:
    """Return the annotations for the report of a worker; None is one that the framework does not know."""
    if worker is None:
        return {POD_DELETION_COST: str(ABSENT), KEYS.worker_report: _json(0, 0)}
    # A head runs user code, so it may report any number.
    tasks, held = (_rounded(min(max(0, count), _LARGEST)) for count in (worker.tasks, worker.bytes_held))
    return {POD_DELETION_COST: str(deletion_cost(tasks, held)), KEYS.worker_report: _json(tasks, held)}


def _holds_anything(annotations: Mapping[str, str]) -> bool:
    return annotations.get(POD_DELETION_COST, str(ABSENT)) not in (str(ABSENT), "0")


def deletion_cost(tasks: int, bytes_held: int) -> int:
    """Return the cost. Any task weighs more than any amount of results: a drain moves results, but a task starts over."""
    return min(tasks, _MOST_TASKS) * _TASK + min(-(-bytes_held // _MEBIBYTE), _TASK - 1)


def _rounded(count: int) -> int:
    step: int = 10 ** max(0, len(str(count)) - 2)  # two significant digits stay
    return count // step * step


def _json(tasks: int, held: int) -> str:
    return msgspec.json.encode({"tasks": tasks, "bytes": held}).decode()
