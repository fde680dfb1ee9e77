"""A cluster's workers as cells: state by shape, color and letter, use of the requests, tasks, and the first to be removed; pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec

from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment, element_id
from grid.core.decoding import prepared
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.clusters import ClusterSnapshot, Member, deletion_order
from grid.diagnosis.requests import pod_requests
from grid.kube.objects import Pod
from grid.metrics.usage import Usage

REGION = "workers"
COMPACT_FROM = 61  # from this number on, workers are shown without names and bars
_LETTERS = {"ready": "R", "start": "S", "image": "I", "volume": "V", "node": "N", "trouble": "!", "ending": "E"}
_WORDS = {
    "ready": _("ready"),
    "start": _("starts"),
    "image": _("waits for its image"),
    "volume": _("waits for a volume"),
    "node": _("waits for a node"),
    "trouble": _("in trouble"),
    "ending": _("leaving"),
}
_STEPS = 10  # bars are drawn in tenths, by classes
LEGEND = tuple((letter, _WORDS[phase]) for phase, letter in _LETTERS.items())
_Count = Annotated[int, msgspec.Meta(ge=0, le=10**18)]


class WorkerHolds(msgspec.Struct, frozen=True):
    """A worker's tasks and bytes, from the annotation `KEYS.worker_report` that the controller writes."""

    tasks: _Count = 0
    bytes: _Count = 0


@dataclass(frozen=True, slots=True)
class WorkerCell:
    """One worker. `cpu` and `memory` are percent of the requests, None without metrics; the steps are their bars' lengths, 0 to 10."""

    namespace: str
    name: str
    short_name: str
    phase: str
    letter: str
    label: str
    node: str
    cpu: int | None
    memory: int | None
    cpu_step: int
    memory_step: int
    tasks: str
    held: str
    phase_words: str
    goes_next: bool
    is_compact: bool


def worker_cells(
    facts: ClusterSnapshot,
    usage_of: Callable[[str], Usage | None],
    report_key: str,
    *,
    empty: EmptyState,
    now: datetime,
) -> list[Fragment]:
    """Return the cells of the region "workers" by creation time, so that each keeps its place; `usage_of` takes `namespace/name`."""
    order = deletion_order(facts.workers, now=now)
    next_to_go = order[0].pod.metadata.name if len(order) > facts.minimum else ""
    members = sorted(facts.workers, key=_by_age)
    if not members:
        return [Fragment("workers-none", "shell/fragments/empty_item.html", empty, region=REGION)]
    is_compact = len(members) >= COMPACT_FROM
    cells = [_cell(member, usage_of, report_key, next_to_go=next_to_go, is_compact=is_compact) for member in members]
    return [
        Fragment(element_id("worker", cell.name), "clusters/fragments/worker_cell.html", cell, region=REGION)
        for cell in cells
    ]


def worker_holds(annotations: Mapping[str, str], key: str) -> WorkerHolds | None:
    """Parse the annotation; None when the controller has not written it, or when it is invalid."""
    try:
        return msgspec.json.decode(annotations[key], type=prepared(WorkerHolds))
    except (KeyError, msgspec.DecodeError):
        return None


def _by_age(member: Member) -> tuple[float, str]:
    created = member.pod.metadata.creation_timestamp
    return created.timestamp() if created else 0.0, member.pod.metadata.name


def _cell(
    member: Member, usage_of: Callable[[str], Usage | None], report_key: str, *, next_to_go: str, is_compact: bool
) -> WorkerCell:
    pod, phase, name = member.pod, member.phase, member.pod.metadata.name
    short_name, goes_next = name.rpartition("-")[2], name == next_to_go
    cpu, memory = _shares(pod, usage_of(pod.metadata.key)) if phase in ("ready", "ending") else (None, None)
    holds = worker_holds(pod.metadata.annotations, report_key) if phase in ("ready", "ending") else None
    tasks = plural(holds.tasks, "task", "tasks") if holds else ""
    held = format_bytes(holds.bytes) if holds and holds.bytes > 0 else ""
    parts = [
        _("worker {name}: {state}", name=short_name, state=_WORDS[phase]),
        _("on {node}", node=pod.spec.node_name) if pod.spec.node_name else "",
        _("CPU {cpu} % of its request", cpu=cpu) if cpu is not None else "",
        _("memory {memory} %", memory=memory) if memory is not None else "",
        tasks,
        _("holds {held}", held=held) if held else "",
        _("first to be removed when the cluster shrinks") if goes_next else "",
    ]
    return WorkerCell(
        namespace=pod.metadata.namespace,
        name=name,
        short_name=short_name,
        phase=phase,
        letter=_LETTERS[phase],
        label=", ".join(filter(None, parts)),
        node=pod.spec.node_name,
        cpu=cpu,
        memory=memory,
        cpu_step=_step(cpu),
        memory_step=_step(memory),
        tasks=tasks,
        held=held,
        phase_words=_WORDS[phase],
        goes_next=goes_next,
        is_compact=is_compact,
    )


def _shares(pod: Pod, usage: Usage | None) -> tuple[int | None, int | None]:
    if usage is None:
        return None, None
    asked = pod_requests(pod)
    cpu = round(100 * usage.cpu_millicores / asked.cpu) if asked.cpu else None
    memory = round(100 * usage.memory_bytes / asked.memory) if asked.memory else None
    return cpu, memory


def _step(percent: int | None) -> int:
    return 0 if percent is None else max(0, min(_STEPS, round(percent * _STEPS / 100)))
