"""Groups of rows that stay together on the Executions page: an execution with its pods, or an orphaned pod; pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter

import msgspec

from dashboard.executions.viewmodels.execution_entry import Entry
from dashboard.shell.viewmodels.states import ENDED_STATES
from grid.core.labels import Keys
from grid.diagnosis.requests import has_ended
from grid.kube.objects import Pod
from grid.runtime.executionrows import ExecutionRow

_NAME, _IS_HEAD = attrgetter("pod_name"), attrgetter("is_head")


class Group(msgspec.Struct, frozen=True, gc=False):
    """Rows that stay together. `head` has a row of its own when `has_head`, as for a cluster with pods; `entries` are the other rows."""

    head: Entry
    entries: tuple[Entry, ...]
    has_head: bool = False

    def __len__(self) -> int:
        return len(self.entries) + self.has_head

    @property
    def key(self) -> str:
        """The execution's id, with the pod's name added for an orphan."""
        id, pod = self.head.execution_id, self.head.pod
        return id if self.head.row or pod is None else f"{id} {pod.metadata.key}"

    @property
    def since(self) -> datetime | None:
        return self.entries[0].since


def group_of(row: ExecutionRow, pods: Sequence[Pod], keys: Keys, *, known: Group | None = None) -> Group | None:
    """Return an execution's rows: its own while it has no pod, else one for each pod. None when it and all of its pods have ended.

    `known` is the group as it was before: its entries are taken for what has not changed.
    """
    if row.state in ENDED_STATES:
        pods = [pod for pod in pods if not has_ended(pod)]
        if not pods:
            return None
    head = Entry.of(row, None, keys)
    before = {entry.pod_name: entry for entry in known.entries} if known is not None and known.head.row is row else {}
    if row.kind != "cluster" and len(pods) <= 1:
        return Group(head, tuple([_entry(row, pod, keys, before, is_member=False) for pod in pods]) or (head,))
    if not pods:
        return Group(head, (head,))
    members = [_entry(row, pod, keys, before, is_member=True) for pod in pods]
    members.sort(key=_NAME)
    members.sort(key=_IS_HEAD, reverse=True)
    return Group(head, tuple(members), has_head=True)


def _entry(row: ExecutionRow, pod: Pod, keys: Keys, before: Mapping[str, Entry], *, is_member: bool) -> Entry:
    known = before.get(pod.metadata.name)
    if known is not None and known.pod is pod and known.is_member == is_member:
        return known
    return Entry.of(row, pod, keys, is_member=is_member, known=known)


def orphan_groups(pods: Sequence[Pod], keys: Keys) -> list[Group]:
    """Return a group for each active pod whose execution is unknown; its facts come from the pod's labels."""
    entries = [Entry.of(None, pod, keys) for pod in pods if not has_ended(pod)]
    return [Group(entry, (entry,)) for entry in entries]
