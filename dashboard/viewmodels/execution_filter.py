"""Filters and sorts the groups of the Executions page; pure.

Filtering and sorting use cheap facts; a status is computed only where a filter needs it.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from dashboard.viewmodels.execution_entry import Entry
from dashboard.viewmodels.execution_groups import Group
from dashboard.viewmodels.executions_view import KINDS, TROUBLE, ExecutionsView, bounds
from dashboard.viewmodels.nodes import StatusLine
from dashboard.viewmodels.states import STATES
from grid.diagnosis.requests import Amounts

StatusOf = Callable[[Entry], StatusLine]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATE_ORDER = {state: place for place, state in enumerate(STATES)}


class GroupFilter:
    """A view's filter. `status_of` returns an entry's status in words, for filters that need it."""

    def __init__(self, view: ExecutionsView, status_of: StatusOf) -> None:
        self._view = view
        self._limits = bounds(view)
        self._status_of = status_of
        self._text = view.text.lower()
        self._node = view.node.lower()

    @property
    def looks_at_statuses(self) -> bool:
        """True when the matches depend on statuses, some of which change with time alone."""
        return bool(self._text) or self._view.status == TROUBLE

    @property
    def looks_at_ages(self) -> bool:
        return self._limits.age is not None

    def narrowed(self, group: Group, now: datetime) -> Group | None:
        """Return the group with its matching entries only; None without any."""
        if not self._view.is_filtered:
            return group
        kept = tuple(entry for entry in group.entries if self._fits(entry, now))
        if len(kept) == len(group.entries):
            return group
        return Group(group.head, kept, group.has_head) if kept else None

    def _fits(self, entry: Entry, now: datetime) -> bool:
        row, view = entry.row, self._view
        chosen = (
            (view.kind, entry.kind),
            (view.tier, row.tier_id if row else entry.tier),
            (view.user, entry.user),
            (view.project, row.project_id if row else entry.project),
        )
        if any(wanted and wanted != actual for wanted, actual in chosen):
            return False
        if self._node and self._node not in entry.node.lower():
            return False
        if view.status and view.status not in (TROUBLE, entry.state):
            return False
        if not self._within(entry, now) or (self._text and not self._mentions(entry)):
            return False
        return view.status != TROUBLE or self._status_of(entry).severity == "problem"

    def _within(self, entry: Entry, now: datetime) -> bool:
        limits = self._limits
        if limits.age is not None and now - (entry.since or now) < limits.age:
            return False
        if limits.restarts is not None and entry.restarts < limits.restarts:
            return False
        if limits.cpu is None and limits.memory is None and limits.gpus is None:
            return True
        asked = entry.requests
        least = Amounts(limits.cpu or 0, limits.memory or 0, limits.gpus or 0)
        return asked.at_least(least) == asked

    def _mentions(self, entry: Entry) -> bool:
        """Return whether the entry has the text. Cheap columns are searched first, so that a status is seldom computed."""
        title = entry.row.title if entry.row else ""
        pod_name = entry.pod.metadata.name if entry.pod else ""
        kind, state = KINDS.get(entry.kind, entry.kind), STATES.get(entry.state, entry.state)
        words = (entry.name, title, pod_name, entry.execution_id, kind, entry.tier, entry.user, entry.project, state)
        cheap = " ".join((*words, entry.node)).lower()
        return self._text in cheap or self._text in self._status_of(entry).note.lower()


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
