"""Rows of executions in words, each rendered once for all lists that show it, and again only when it has changed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from itertools import chain

import msgspec

from dashboard.executions.pages.execution_pods import POD_STATES, explain
from dashboard.executions.viewmodels.execution_groups import (
    WELL,
    Entry,
    Group,
    Status,
    change_with_time,
    changed_fragment,
    cluster_status,
    entry_fragment,
    head_fragment,
    runs_well,
    status_of,
)
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from dashboard.starts.expected_waits import EXPECTED
from dashboard.starts.viewmodels.expected_wait import with_note
from grid.metrics.usage import Usage
from grid.runtime import Runtime
from grid.runtime.starts import STARTING

FOR_EVER = timedelta(days=365)
_END = datetime.max.replace(tzinfo=UTC)
MOST_VARIANTS = 16  # of a group's rows: parts that different filters leave of it
GOOD_FOR = timedelta(seconds=5)  # for texts that mention a waiting time


class RowReader(IntEnum):
    """For whom rows are put into words."""

    OBSERVER, OWNER, MEMBER = range(3)


class _Known(msgspec.Struct, frozen=True, gc=False):
    entry: Entry
    usage: Usage | None
    usage_version: int
    made_at: datetime
    changes_with_time: bool
    awaited: tuple[str, int] | None
    wait: str
    fragment: Fragment
    holds: bool  # it depends on its entry and usage alone: neither on time, nor on a pool, nor on what is expected


class Rows(msgspec.Struct, frozen=True, gc=False):
    """A group's rows, a cluster's own first, valid until `good_until`: some texts change with time. `wait` says when it is to start."""

    group: Group
    used: Sequence[Usage]
    trouble: Status | None  # of a cluster's head
    usage_version: int
    good_until: datetime
    awaited: Sequence[tuple[str, int]]  # pools for whose nodes pods of the group wait, with their versions
    wait: str
    fragments: Sequence[Fragment]

    @property
    def is_settled(self) -> bool:
        """Return whether they depend neither on a pool nor on what is expected."""
        return not self.awaited and not is_starting(self.group)


class PageRows(msgspec.Struct, frozen=True, gc=False):
    """The rows of a page's groups. While all are settled, before `good_until`, only groups that were exchanged need to be looked at."""

    groups: Sequence[Group] = ()
    rows: Sequence[Rows] = ()
    usage_version: int = -1
    good_until: datetime = _END
    are_settled: bool = True
    awaits_start: bool = False  # one of the groups is starting

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def fragments(self) -> list[Fragment]:
        return list(chain.from_iterable([each.fragments for each in self.rows]))

    def exchanged(self, groups: Sequence[Group]) -> list[tuple[int, Group]]:
        """Return those groups, with their places, that are not the same as on this page."""
        both, known = zip(self.groups, groups, strict=False), len(self.groups)
        changed = [(place, group) for place, (was, group) in enumerate(both) if was is not group]
        return [*changed, *enumerate(groups[known:], known)]


class ExecutionRows:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._usage = runtime.usage
        # By the group's key, then by whom they are for and the ids of the entries.
        self._groups: dict[str, dict[tuple[int, ...], Rows]] = {}
        # By execution, then by the pod's name and whom the row is for.
        self._known: dict[str, dict[tuple[str, RowReader], _Known]] = {}

    def of_page(self, groups: Sequence[Group], known: PageRows, *, viewer_id: int | None, now: datetime) -> PageRows:
        """Return the rows of a page's groups. `known` is what was returned for the page before, or empty."""
        version, rows = self._usage.version, list(known.rows[: len(groups)])
        asked, good_until = known.exchanged(groups), known.good_until
        if not known.are_settled or known.usage_version != version or now >= good_until:
            asked, good_until = list(enumerate(groups)), _END
        are_settled, awaits_start = True, False
        for place, group in asked:
            new = rows[place] if place < len(rows) else None
            if new is None or new.group is not group or not self._is_current(new, now):
                new = self.of(group, viewer_id=viewer_id, now=now)
            rows[place : place + 1] = [new]
            good_until, are_settled = min(good_until, new.good_until), are_settled and new.is_settled
            awaits_start = awaits_start or is_starting(group)
        return PageRows(groups, rows, version, good_until, are_settled, awaits_start)

    def of(self, group: Group, *, viewer_id: int | None, now: datetime) -> Rows:
        """Return a group's rows for a viewer; None for those who see everything, who share them."""
        reader = _reader(group, viewer_id)
        # Lists with different filters show different entries of an execution, but the same objects.
        of_execution, key = self._groups.setdefault(group.key, {}), (reader, *map(id, group.entries))
        last, version = of_execution.get(key), self._usage.version
        if last is not None and self._is_current(last, now):
            return last
        wait = EXPECTED.note(group.head.row, self._runtime)
        rows_known = self._known.setdefault(group.head.execution_id, {})
        known = [
            row
            if (row := rows_known.get((entry.pod_name, reader))) is not None
            and row.entry is entry
            and row.holds
            and row.usage_version == version
            else self._row(entry, row, rows_known, reader, now)
            for entry in group.entries
        ]
        fragments, used = [row.fragment for row in known], tuple(row.usage for row in known if row.usage is not None)
        trouble = head_trouble(self._runtime, group, now)
        if group.has_head:
            if last is not None and (last.used, last.trouble, last.wait) == (used, trouble, wait):
                fragments.insert(0, last.fragments[0])
            else:
                fragments.insert(0, head_fragment(group, used, trouble, to_owner=reader is RowReader.OWNER, wait=wait))
        good_for = GOOD_FOR if any(row.changes_with_time for row in known) else FOR_EVER
        if len(of_execution) >= MOST_VARIANTS:
            of_execution.clear()  # of lists that nobody looks at any more, nearly always
        awaited = tuple({row.awaited for row in known if row.awaited})
        rows = of_execution[key] = Rows(group, used, trouble, version, now + good_for, awaited, wait, tuple(fragments))
        return rows

    def _is_current(self, rows: Rows, now: datetime) -> bool:
        """Return whether usage, the pools that the rows' pods wait for and what is expected are as they were."""
        version = self._runtime.room_changes.version
        if rows.usage_version != self._usage.version or now >= rows.good_until:
            return False
        return rows.wait == EXPECTED.note(rows.group.head.row, self._runtime) and all(
            version(pool) == seen for pool, seen in rows.awaited
        )

    def status(self, entry: Entry) -> StatusLine:
        """Return an entry's status for filters."""
        return entry_status(self._runtime, entry, self._runtime.clock())[0]

    def forget(self, execution_id: str, pod_name: str) -> None:
        """Drop the pod's row, because an event about it came or went."""
        if (known := self._known.get(execution_id)) is not None:
            for reader in RowReader:
                known.pop((pod_name, reader), None)

    def forget_unless_in(self, old: Group | None, new: Group | None) -> None:
        """Drop the rows of the old group, and those of entries that the new one does not have."""
        if old is None:
            return
        self._groups.pop(old.key, None)
        id = old.head.execution_id
        if id not in self._known:
            return  # no page has shown it
        if new is None:
            del self._known[id]
            return
        gone, come = set(old.entries).difference(new.entries), set(new.entries).difference(old.entries)
        for name in {entry.pod_name for entry in gone} - {entry.pod_name for entry in come}:
            self.forget(id, name)

    def _row(
        self,
        entry: Entry,
        last: _Known | None,
        known: dict[tuple[str, RowReader], _Known],
        reader: RowReader,
        now: datetime,
    ) -> _Known:
        version = self._usage.version
        if last is not None and last.usage_version == version:
            usage = last.usage
        else:
            usage = self._usage.pod(entry.pod.metadata.key) if entry.pod is not None else None
        awaited = self._runtime.explainer.awaited(entry.pod) if entry.pod is not None else None
        wait = "" if entry.is_member else EXPECTED.note(entry.row, self._runtime)
        if (
            last is not None
            and last.usage == usage
            and last.awaited == awaited
            and last.wait == wait
            and last.entry.pod is entry.pod
            and last.entry.row is entry.row
            and last.entry.is_member == entry.is_member
            and (not last.changes_with_time or timedelta() <= now - last.made_at < GOOD_FOR)
        ):
            return last
        sees_all, to_owner = reader is RowReader.OBSERVER, reader is RowReader.OWNER
        status = entry_status(self._runtime, entry, now, sees_all=sees_all, to_owner=to_owner)
        status = with_note(status[0], wait), status[1]
        if last is not None and last.usage == usage and entry.differs_in_status_alone(last.entry):
            fragment = changed_fragment(last.fragment, entry, status)
        else:
            fragment = entry_fragment(entry, status, usage, sees_all=sees_all)
        restless = change_with_time((entry,))
        holds = awaited is None and entry.is_member and not restless
        new = _Known(entry, usage, version, now, restless, awaited, wait, fragment, holds)
        known[entry.pod_name, reader] = new
        return new


def is_starting(group: Group) -> bool:
    """Return whether one may say when the execution starts."""
    return group.head.state in STARTING


def _reader(group: Group, viewer_id: int | None) -> RowReader:
    if viewer_id is None:
        return RowReader.OBSERVER
    row = group.head.row
    return RowReader.OWNER if row is not None and row.owner_id == viewer_id else RowReader.MEMBER


def group_status(runtime: Runtime, group: Group, now: datetime) -> Status:
    """Return an execution's status with its expected wait, told to its owner: that of its pod, or of all of its pods together."""
    if group.has_head:
        status = cluster_status(group, head_trouble(runtime, group, now), to_owner=True)
    else:
        status = entry_status(runtime, group.entries[0], now, to_owner=True)
    return with_note(status[0], EXPECTED.note(group.head.row, runtime)), status[1]


def entry_status(
    runtime: Runtime, entry: Entry, now: datetime, *, sees_all: bool = False, to_owner: bool = False
) -> Status:
    if runs_well(entry):
        return WELL
    diagnosis = explain(runtime, entry.pod, now, sees_all=sees_all) if entry.pod is not None else None
    return status_of(entry, diagnosis, to_owner=to_owner)


def head_trouble(runtime: Runtime, group: Group, now: datetime) -> Status | None:
    """Return the status of a cluster's head when that has a problem: without its head a cluster is of no use."""
    head = next((entry for entry in group.entries if entry.is_head), None)
    if head is None or group.head.state not in POD_STATES:
        return None
    status = entry_status(runtime, head, now)
    return status if status[0].severity == "problem" else None
