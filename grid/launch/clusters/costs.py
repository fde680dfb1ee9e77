"""What each worker is told about itself: how dear it would be to lose it, and what it holds. Pure.

Kubernetes removes first what has no node or is not ready, and then what costs least. So a worker that has not joined, or that its head
has lost, is cheapest: nothing can be lost with it. Then come idle ones, those with fewer results first, because their drain is short; then
busy ones by their tasks. Kubernetes asks to change this rarely: numbers are rounded, and while a worker only does more or less of the same
they are written four times a minute at most. That it has nothing any more, or something again, is written at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from grid.kube.objects import Pod
from grid.labels import KEYS, POD_DELETION_COST
from grid.launch.frameworks.base import ClusterReport, WorkerReport

HOLD_SECONDS = 15.0
ABSENT = -1
_TASK = 1_000_000
_MOST_TASKS = 2_000  # with the bytes of a whole step this stays below 2**31, Kubernetes' limit
_MEBIBYTE = 2**20
_LARGEST = 10**18


@dataclass(frozen=True, slots=True)
class Notes:
    """The annotations of one worker; `holds` is whether there is anything to lose."""

    cost: str
    report: str
    holds: bool

    @property
    def annotations(self) -> dict[str, str]:
        return {POD_DELETION_COST: self.cost, KEYS.worker_report: self.report}


def changed(
    report: ClusterReport, workers: Sequence[Pod], written_at: Mapping[str, float], *, now: float
) -> list[tuple[Pod, Notes]]:
    """The pods to write to now. `written_at` is when each pod, by uid, was written to last."""
    found = []
    for pod in workers:
        notes = notes_on(report.workers.get(pod.metadata.name))
        before = pod.metadata.annotations
        if all(before.get(key) == value for key, value in notes.annotations.items()):
            continue
        is_news = notes.holds != _held(before)
        if is_news or now - written_at.get(pod.metadata.uid, float("-inf")) >= HOLD_SECONDS:
            found.append((pod, notes))
    return found


def notes_on(worker: WorkerReport | None) -> Notes:
    """None for one that the framework does not know."""
    if worker is None:
        return Notes(str(ABSENT), _json(0, 0), holds=False)
    # What a head says is its user's word, so any number may come.
    tasks, held = (_rounded(min(max(0, count), _LARGEST)) for count in (worker.tasks, worker.bytes_held))
    return Notes(str(deletion_cost(tasks, held)), _json(tasks, held), holds=bool(tasks or held))


def deletion_cost(tasks: int, bytes_held: int) -> int:
    """Any task weighs more than any amount of results: results are moved in the drain, a task is begun again."""
    return min(tasks, _MOST_TASKS) * _TASK + min(-(-bytes_held // _MEBIBYTE), _TASK - 1)


def _held(annotations: Mapping[str, str]) -> bool:
    return annotations.get(POD_DELETION_COST, str(ABSENT)) not in (str(ABSENT), "0")


def _rounded(count: int) -> int:
    """To two digits."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return count // step * step


def _json(tasks: int, held: int) -> str:
    return msgspec.json.encode({"tasks": tasks, "bytes": held}).decode()
