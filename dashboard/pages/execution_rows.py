"""Rows of executions in words, each rendered once for all lists that show it, and again only when it has changed."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain, repeat

import msgspec

from dashboard.pages.clusters import CLUSTER_STATES
from dashboard.pages.execution_pods import explain
from dashboard.viewmodels.execution_entry import Entry
from dashboard.viewmodels.execution_groups import Group
from dashboard.viewmodels.execution_lines import (
    WELL,
    Status,
    changes_with_time,
    cluster_status,
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
MOST_VARIANTS = 16  # of a group's rows: parts that different filters leave of it
GOOD_FOR = timedelta(seconds=5)  # for texts that mention a waiting time


class _Known(msgspec.Struct, frozen=True, gc=False):
    entry: Entry
    usage: Usage | None
    usage_version: int
    made_at: datetime
    changes_with_time: bool
    fragment: Fragment


class Rows(msgspec.Struct, frozen=True, gc=False):
    """A group's rows, a cluster's own first. They are valid until `good_until`, because some texts change with time."""

    group: Group | None
    used: Sequence[Usage]
    trouble: Status | None  # of a cluster's head
    usage_version: int
    good_until: datetime
    fragments: Sequence[Fragment]


_NO_ROWS = Rows(None, (), None, 0, datetime.max, ())


class ExecutionRows:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._usage = runtime.usage
        # By the group's key, then by `sees_all` and the ids of the entries.
        self._groups: dict[str, dict[tuple[int, ...], Rows]] = {}
        # By execution, then by the pod's name and `sees_all`.
        self._known: dict[str, dict[tuple[str, bool], _Known]] = {}

    def of_page(self, groups: Sequence[Group], known: Sequence[Rows], *, sees_all: bool, now: datetime) -> list[Rows]:
        """Return the rows of a page's groups. `known` is what was returned for the page before, or empty."""
        version = self._usage.version
        return [
            last
            if last.group is group and last.usage_version == version and now < last.good_until
            else self.of(group, sees_all=sees_all, now=now)
            for last, group in zip(chain(known, repeat(_NO_ROWS)), groups, strict=False)
        ]

    def of(self, group: Group, *, sees_all: bool, now: datetime) -> Rows:
        """Return a group's rows."""
        # Lists with different filters show different entries of an execution, but the same objects.
        of_execution, key = self._groups.setdefault(group.key, {}), (sees_all, *map(id, group.entries))
        last, version = of_execution.get(key), self._usage.version
        if last is not None and last.usage_version == version and now < last.good_until:
            return last
        rows_known = self._known.setdefault(group.head.execution_id, {})
        known = [self._row(entry, rows_known, sees_all, now) for entry in group.entries]
        found, used = [one.fragment for one in known], tuple(one.usage for one in known if one.usage is not None)
        trouble = head_trouble(self._runtime, group, now)
        if group.has_head:
            is_as_before = last is not None and last.used == used and last.trouble == trouble
            own = last.fragments[0] if last is not None and is_as_before else head_fragment(group, used, trouble)
            found.insert(0, own)
        good_for = GOOD_FOR if any(one.changes_with_time for one in known) else FOR_EVER
        if len(of_execution) >= MOST_VARIANTS:
            of_execution.clear()  # of lists that nobody looks at any more, nearly always
        rows = of_execution[key] = Rows(group, used, trouble, version, now + good_for, tuple(found))
        return rows

    def status(self, entry: Entry) -> StatusLine:
        """Return an entry's status for filters."""
        return entry_status(self._runtime, entry, self._runtime.clock())[0]

    def forget(self, execution_id: str, pod_name: str) -> None:
        """Drop the pod's row, because an event about it came or went."""
        if (known := self._known.get(execution_id)) is not None:
            known.pop((pod_name, False), None)
            known.pop((pod_name, True), None)

    def forget_unless_in(self, old: Group | None, new: Group | None) -> None:
        """Drop the rows of the old group, and those of entries that the new one does not have."""
        if old is None:
            return
        self._groups.pop(old.key, None)
        id = old.head.execution_id
        if id not in self._known:
            return  # no page has shown it
        kept = set() if new is None else {_pod_name(entry) for entry in new.entries}
        self._known[id] = {key: known for key, known in self._known[id].items() if key[0] in kept}
        if not self._known[id]:
            del self._known[id]

    def _row(self, entry: Entry, known: dict[tuple[str, bool], _Known], sees_all: bool, now: datetime) -> _Known:
        key, version = (_pod_name(entry), sees_all), self._usage.version
        last = known.get(key)
        if last is not None and last.usage_version == version:
            usage = last.usage
        else:
            usage = self._usage.pod(entry.pod.metadata.key) if entry.pod is not None else None
        if (
            last is not None
            and last.usage == usage
            and last.entry.pod is entry.pod
            and last.entry.row is entry.row
            and last.entry.is_member == entry.is_member
            and (not last.changes_with_time or timedelta() <= now - last.made_at < GOOD_FOR)
        ):
            return last
        fragment = entry_fragment(entry, entry_status(self._runtime, entry, now), usage, sees_all=sees_all)
        new = known[key] = _Known(entry, usage, version, now, changes_with_time(entry), fragment)
        return new


def group_status(runtime: Runtime, group: Group, now: datetime) -> Status:
    """Return an execution's status: that of its pod, or of all of its pods together."""
    if group.has_head:
        return cluster_status(group, head_trouble(runtime, group, now))
    return entry_status(runtime, group.entries[0], now)


def entry_status(runtime: Runtime, entry: Entry, now: datetime) -> Status:
    if runs_well(entry):
        return WELL
    return status_of(entry, explain(runtime, entry.pod, now) if entry.pod is not None else None)


def head_trouble(runtime: Runtime, group: Group, now: datetime) -> Status | None:
    """Return the status of a cluster's head when that has a problem: without its head a cluster is of no use."""
    head = next((entry for entry in group.entries if entry.is_head), None)
    if head is None or group.head.state not in CLUSTER_STATES:
        return None
    status = entry_status(runtime, head, now)
    return status if status[0].severity == "problem" else None


def _pod_name(entry: Entry) -> str:
    return entry.pod.metadata.name if entry.pod is not None else ""
