"""Rows of executions in words, each rendered once for all lists that show it, and again only when it has changed."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from dashboard.pages.execution_pods import explain
from dashboard.viewmodels.execution_entry import Entry
from dashboard.viewmodels.execution_groups import Group
from dashboard.viewmodels.execution_lines import (
    WELL,
    changes_with_time,
    entry_fragment,
    head_fragment,
    runs_well,
    status_of,
)
from dashboard.viewmodels.live import Fragment
from dashboard.viewmodels.nodes import StatusLine
from grid.metrics.usage import Usage
from grid.runtime import Runtime

FOR_EVER = timedelta(days=365)
GOOD_FOR = timedelta(seconds=5)  # for texts that mention a waiting time


class _Known(msgspec.Struct, frozen=True, gc=False):
    entry: Entry
    usage: Usage | None
    made_at: datetime
    changes_with_time: bool
    fragment: Fragment


class _Rows(msgspec.Struct, frozen=True, gc=False):
    """A group's rows, which are valid until `good_until`, because some texts change with time."""

    group: Group
    used: Sequence[Usage]
    usage_version: int
    good_until: datetime
    fragments: Sequence[Fragment]


class ExecutionRows:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._usage = runtime.usage
        self._groups: dict[tuple[str, bool], _Rows] = {}
        self._known: dict[tuple[str, str], dict[bool, _Known]] = {}  # by execution and pod, then by `sees_all`

    def of(self, group: Group, *, sees_all: bool, now: datetime) -> Sequence[Fragment]:
        """Return a group's rows; a cluster's own row is the first."""
        last, usage_version = self._groups.get((group.key, sees_all)), self._usage.version
        if last is not None and last.group is group and last.usage_version == usage_version and now < last.good_until:
            return last.fragments
        known = [self._row(entry, sees_all, now) for entry in group.entries]
        found, used = [one.fragment for one in known], tuple(one.usage for one in known if one.usage is not None)
        if group.has_head:
            is_as_before = last is not None and last.group is group and last.used == used
            found.insert(0, last.fragments[0] if last is not None and is_as_before else head_fragment(group, used))
        good_for = GOOD_FOR if any(one.changes_with_time for one in known) else FOR_EVER
        rows = self._groups[group.key, sees_all] = _Rows(group, used, usage_version, now + good_for, tuple(found))
        return rows.fragments

    def status(self, entry: Entry) -> StatusLine:
        """Return an entry's status for filters."""
        return WELL[0] if runs_well(entry) else self._status(entry, self._runtime.clock())[0]

    def forget(self, pod_key: str, execution_id: str) -> None:
        """Drop the pod's row, because an event about it came or went."""
        self._known.pop((execution_id, pod_key), None)

    def forget_unless_in(self, old: Group | None, new: Group | None) -> None:
        """Drop the rows of the old group, and those of its entries that the new one does not have."""
        if old is not None:
            for sees_all in (False, True):
                self._groups.pop((old.key, sees_all), None)
            kept = set() if new is None else {_key(entry) for entry in new.entries}
            for key in map(_key, old.entries):
                if key not in kept:
                    self._known.pop(key, None)

    def _row(self, entry: Entry, sees_all: bool, now: datetime) -> _Known:
        usage = self._usage.pod(entry.pod.metadata.key) if entry.pod is not None else None
        known = self._known.setdefault(_key(entry), {})
        last = known.get(sees_all)
        if (
            last is not None
            and last.usage == usage
            and _is_same(last.entry, entry)
            and (not last.changes_with_time or timedelta() <= now - last.made_at < GOOD_FOR)
        ):
            return last
        fragment = entry_fragment(entry, self._status(entry, now), usage, sees_all=sees_all)
        new = known[sees_all] = _Known(entry, usage, now, changes_with_time(entry), fragment)
        return new

    def _status(self, entry: Entry, now: datetime) -> tuple[StatusLine, str]:
        if runs_well(entry):
            return WELL
        return status_of(entry, explain(self._runtime, entry.pod, now) if entry.pod is not None else None)


def _key(entry: Entry) -> tuple[str, str]:
    return entry.execution_id, entry.pod.metadata.key if entry.pod is not None else ""


def _is_same(one: Entry, other: Entry) -> bool:
    return one.row is other.row and one.pod is other.pod and one.is_member == other.is_member
