"""A drain before it begins and while it goes on: which pods, whose they are, and what each waits for; pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import plural
from grid.nodes.drain import DrainedPod
from grid.nodes.draining import Progress
from grid.runtime.executionrows import ExecutionRow

_KINDS: Mapping[str, str] = {
    "workspace": _(
        "The workspace ends with an error. Its owner can resume it on another node; what is only in memory is lost."
    ),
    "app": _("The app ends with an error, and its owner has to launch it again."),
    "job": _("The run ends with an error, and is tried again if it has retries left."),
}


@dataclass(frozen=True, slots=True)
class Whose:
    """The execution of a pod; all empty for a pod that belongs to none."""

    execution: str = ""
    title: str = ""
    owner: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One pod of the plan. `lost` names the volumes whose data goes with it; `forbids` the budget that keeps it."""

    namespace: str
    name: str
    whose: Whose
    follows: str
    lost: str = ""
    forbids: str | None = None


@dataclass(frozen=True, slots=True)
class DrainPlan:
    evicted: Sequence[PlannedRow]
    stay: Sequence[PlannedRow]
    summary: str


@dataclass(frozen=True, slots=True)
class DrainingPod:
    """A pod that is not gone yet."""

    namespace: str
    name: str
    whose: Whose
    word: str
    since: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Draining:
    """How far a drain is; the pods that are longest in their state come first."""

    gone: int
    pods: int
    left: tuple[DrainingPod, ...]


def whose_of(row: ExecutionRow | None) -> Whose:
    if row is None:
        return Whose()
    return Whose(row.id, row.title or row.object_name, row.owner_username, row.project_name)


def drain_page(plan: Sequence[DrainedPod], rows: Mapping[str, ExecutionRow]) -> DrainPlan:
    """Return the plan as the page shows it; `rows` are the pods' executions by the pod's uid."""
    evicted = [_planned(drained, rows.get(drained.pod.metadata.uid)) for drained in plan if drained.fate == "evicted"]
    stay = [_planned(drained, rows.get(drained.pod.metadata.uid)) for drained in plan if drained.fate == "stays"]
    people = len({row.whose.owner for row in evicted if row.whose.owner})
    kept = sum(bool(row.forbids) for row in evicted)
    pods = plural(len(evicted), "pod", "pods")
    summary = (
        _("It evicts {pods} of {people}.", pods=pods, people=plural(people, "person", "people"))
        if people
        else _("It evicts {pods}.", pods=pods)
    )
    if not evicted:
        summary = _("Nothing runs there that would have to be evicted.")
    if stay:
        summary += " " + ngettext(
            "{count:,} pod of the node's own stays.", "{count:,} pods of the node's own stay.", len(stay)
        )
    if kept:
        summary += " " + ngettext(
            "{count:,} eviction must wait for a disruption budget.",
            "{count:,} evictions must wait for a disruption budget.",
            kept,
        )
    return DrainPlan(evicted, stay, summary)


def _planned(drained: DrainedPod, row: ExecutionRow | None) -> PlannedRow:
    follows = drained.why
    if not drained.comes_back and row is not None:
        follows = _KINDS.get(row.kind, drained.why)
    elif not drained.comes_back:
        follows = f"{drained.why} " + _("It does not come back.")
    meta = drained.pod.metadata
    return PlannedRow(meta.namespace, meta.name, whose_of(row), follows, ", ".join(drained.lost), drained.forbids)


def draining(progress: Progress, row_of: Callable[[str], ExecutionRow | None], namespace: str) -> Draining:
    """Return how far the drain is; labels of executions are trusted in `namespace` alone."""
    left = [
        DrainingPod(
            pod.namespace,
            pod.name,
            whose_of(row_of(pod.execution)) if pod.execution and pod.namespace == namespace else Whose(),
            _("Ending") if pod.state == "ending" else _("Waits"),
            pod.since,
            pod.why,
        )
        for pod in progress.values()
        if pod.state != "gone"
    ]
    left.sort(key=lambda pod: (pod.since, pod.namespace, pod.name))
    return Draining(len(progress) - len(left), len(progress), tuple(left))
