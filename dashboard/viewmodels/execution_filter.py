"""Filters and sorts the groups of the Executions page; pure.

Filtering and sorting use cheap facts; a status is computed only where a filter needs it.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from dashboard.viewmodels.execution_entry import Entry
from dashboard.viewmodels.execution_groups import Group
from dashboard.viewmodels.executions_view import KINDS, TROUBLE, Bounds, ExecutionsView, bounds
from dashboard.viewmodels.nodes import StatusLine
from dashboard.viewmodels.states import STATES
from grid.diagnosis.requests import Amounts

StatusOf = Callable[[Entry], StatusLine]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATE_ORDER = {state: place for place, state in enumerate(STATES)}


class GroupFilter:
    """A view's filter. `status_of` returns an entry's status in words, for filters that need it."""

    def __init__(self, view: ExecutionsView, status_of: StatusOf) -> None:
        limits = bounds(view)
        self._chosen = [(value_of, wanted) for wanted, value_of in _chosen(view) if wanted]
        self._fits = list(_tests(view, limits, status_of))
        # A text and "in trouble" depend on statuses, some of which change with time alone.
        self.looks_at_statuses = bool(view.text) or view.status == TROUBLE
        self.looks_at_ages = limits.age is not None

    def narrowed(self, group: Group, now: datetime) -> Group | None:
        """Return the group with its matching entries only; None without any."""
        for value_of, wanted in self._chosen:
            if value_of(group.head) != wanted:
                return None
        if not self._fits:
            return group
        kept = tuple(entry for entry in group.entries if all(fits(entry, now) for fits in self._fits))
        if len(kept) == len(group.entries):
            return group
        return Group(group.head, kept, group.has_head) if kept else None


def _tests(view: ExecutionsView, limits: Bounds, status_of: StatusOf) -> Iterator[Callable[[Entry, datetime], bool]]:
    """Yield what the view asks of an entry, what is computed fastest first."""
    node, text, status = view.node.lower(), view.text.lower(), view.status
    if node:
        yield lambda entry, now: node in entry.node.lower()
    if status and status != TROUBLE:
        yield lambda entry, now: entry.state == status
    if any(limit is not None for limit in (limits.age, limits.restarts, limits.cpu, limits.memory, limits.gpus)):
        yield partial(_is_within, limits)
    if text:
        yield lambda entry, now: _mentions(entry, text, status_of)
    if status == TROUBLE:
        yield lambda entry, now: status_of(entry).severity == "problem"


def _is_within(limits: Bounds, entry: Entry, now: datetime) -> bool:
    if limits.age is not None and now - (entry.since or now) < limits.age:
        return False
    if limits.restarts is not None and entry.restarts < limits.restarts:
        return False
    if limits.cpu is None and limits.memory is None and limits.gpus is None:
        return True
    asked = entry.requests
    least = Amounts(limits.cpu or 0, limits.memory or 0, limits.gpus or 0)
    return asked.at_least(least) == asked


def _mentions(entry: Entry, text: str, status_of: StatusOf) -> bool:
    """Return whether the entry has the text. Cheap columns are searched first, so that a status is seldom computed."""
    title = entry.row.title if entry.row else ""
    pod_name = entry.pod.metadata.name if entry.pod else ""
    kind, state = KINDS.get(entry.kind, entry.kind), STATES.get(entry.state, entry.state)
    words = (entry.name, title, pod_name, entry.execution_id, kind, entry.tier, entry.user, entry.project, state)
    cheap = " ".join((*words, entry.node)).lower()
    return text in cheap or text in status_of(entry).note.lower()


def _chosen(view: ExecutionsView) -> Iterable[tuple[str, Callable[[Entry], str]]]:
    """Return what is the same for all entries of a group: the wanted value, "" for any, and how to find an entry's."""
    return (
        (view.kind, lambda entry: entry.kind),
        (view.tier, lambda entry: entry.row.tier_id if entry.row else entry.tier),
        (view.user, lambda entry: entry.user),
        (view.project, lambda entry: entry.row.project_id if entry.row else entry.project),
    )


def sorting(view: ExecutionsView) -> tuple[Callable[[Group], Any], bool]:
    """Return a sort key, and whether the list is read from its end. Equal groups come newest first in both directions."""
    column = _SORT_KEYS[view.sort]
    is_reversed = view.descending if view.sort != "age" else not view.descending
    direction = 1 if is_reversed else -1
    return lambda group: (column(group), direction * _seconds(group.head.since), group.head.name), is_reversed


def _seconds(moment: datetime | None) -> float:
    return (moment - _EPOCH).total_seconds() if moment else 0.0


def _largest(of: Callable[[Entry], Any]) -> Callable[[Group], Any]:
    return lambda group: max(of(entry) for entry in group.entries)


_SORT_KEYS: dict[str, Callable[[Group], Any]] = {
    "name": lambda group: group.head.name.lower(),
    "kind": lambda group: group.head.kind,
    "tier": lambda group: group.head.tier.lower(),
    "user": lambda group: group.head.user.lower(),
    "project": lambda group: group.head.project.lower(),
    "status": lambda group: _STATE_ORDER.get(group.head.state, len(_STATE_ORDER)),
    "node": _largest(lambda entry: entry.node),
    "age": lambda group: _seconds(group.since),
    "restarts": _largest(lambda entry: entry.restarts),
    "cpu": lambda group: sum(entry.requests.cpu for entry in group.entries),
    "memory": lambda group: sum(entry.requests.memory for entry in group.entries),
    "gpus": lambda group: sum(entry.requests.gpus for entry in group.entries),
}
