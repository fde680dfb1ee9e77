"""Rows of the Executions page: an execution with its pods, or an orphaned pod, stay together as a group; pure.

An `Entry` has the cheap facts by which rows are filtered and sorted; an `ExecutionLine` is what is shown of it, in words.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from dashboard.shell.viewmodels.states import ENDED_STATES, KINDS, STARTED, StatusLine, framework_name, state_status
from dashboard.starts.viewmodels.expected_wait import with_note
from grid.core.labels import APP_COMPONENT, HEAD, WORKER, Keys
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.requests import Amounts, has_ended, pod_requests, total
from grid.kube.objects import Pod, is_ready
from grid.metrics.usage import Usage
from grid.runtime.executionrows import ExecutionRow

_PARTS = {HEAD: _("Head"), WORKER: _("Worker")}
PARTS_IN_NAMES = {HEAD: _("head"), WORKER: _("worker")}


class Entry(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One row's cheap facts, kept until its pod or its execution changes; `pod` is None while there is none, and for a cluster's own row.
    There is one for each pod, and none can be part of a cycle: untracked, they do not lengthen the garbage collector's pauses."""

    row: ExecutionRow | None
    pod: Pod | None
    keys: Keys
    is_member: bool = False
    pod_state: str = ""  # "" without a pod
    restarts: int = 0
    pod_name: str = ""
    is_head: bool = False  # of a cluster
    _requests: Amounts | None = None  # of those that were shown, because it takes long to read

    @classmethod
    def of(
        cls,
        row: ExecutionRow | None,
        pod: Pod | None,
        keys: Keys,
        *,
        is_member: bool = False,
        known: "Entry | None" = None,
    ) -> "Entry":
        """Return the entry with its pod's state and restarts; `known` is the one before the pod changed."""
        if pod is None:
            return cls(row, None, keys)
        is_head = is_member and pod.metadata.labels.get(APP_COMPONENT) == HEAD
        requests = known._requests if known and known.pod and known.pod.spec is pod.spec else None
        return cls(row, pod, keys, is_member, state_of(pod), restarts_of(pod), pod.metadata.name, is_head, requests)

    def differs_in_status_alone(self, before: "Entry") -> bool:
        """Return whether nothing else has changed; False when it cannot be told at once."""
        if self.pod is None or before.pod is None or self.row is not before.row or self.is_member != before.is_member:
            return False
        return self.pod.spec is before.pod.spec and self.pod.metadata.labels is before.pod.metadata.labels

    @property
    def execution_id(self) -> str:
        return self.row.id if self.row else self._label(self.keys.execution)

    @property
    def name(self) -> str:
        if self.is_member or self.row is None:
            return self.pod_name
        return self.row.title or self.row.object_name

    @property
    def short_name(self) -> str:
        """The name; for a cluster's pod its part and random suffix: "worker t6vgn"."""
        part = self._label(APP_COMPONENT) if self.is_member else ""
        return f"{PARTS_IN_NAMES.get(part, part)} {self.name.rpartition('-')[2]}" if part else self.name

    @property
    def kind(self) -> str:
        return self.row.kind if self.row else self._label(self.keys.workload_type).lower()

    @property
    def part(self) -> str:
        """The part of a cluster's pod, "Head" or "Worker"; for the cluster itself its framework, "Dask cluster"; otherwise ""."""
        if self.is_member:
            part = self._label(APP_COMPONENT)
            return _PARTS.get(part, part)
        framework = self.row.framework if self.row else ""
        return _("{framework} cluster", framework=framework_name(framework)) if framework else ""

    @property
    def tier(self) -> str:
        """The tier's name; for a cluster its workers' tier, for its head the head's own."""
        if self.row is None:
            return self._label(self.keys.tier)
        return (self.is_head and self.row.head_tier_name) or self.row.tier_name

    @property
    def user(self) -> str:
        return self.row.owner_username if self.row else self._label(self.keys.user)

    @property
    def project(self) -> str:
        return self.row.project_name if self.row else self._label(self.keys.project)

    @property
    def state(self) -> str:
        """The execution's state; for a cluster's pod and for an orphan its own."""
        if self.pod is not None and (self.row is None or self.is_member):
            return self.pod_state
        return self.row.state if self.row else ""

    @property
    def node(self) -> str:
        return self.pod.spec.node_name if self.pod else ""

    @property
    def since(self) -> datetime | None:
        return self.pod.metadata.creation_timestamp if self.pod else self.row.requested_at if self.row else None

    @property
    def requests(self) -> Amounts:
        if self._requests is None:
            msgspec.structs.force_setattr(self, "_requests", pod_requests(self.pod) if self.pod else Amounts())
        assert self._requests is not None
        return self._requests

    def _label(self, key: str) -> str:
        return self.pod.metadata.labels.get(key, "") if self.pod else ""


def restarts_of(pod: Pod) -> int:
    """Return how often containers of the pod were restarted."""
    restarts = 0  # a loop, because each pod of a list is asked and `sum` takes three times as long
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        restarts += status.restart_count
    return restarts


def state_of(pod: Pod) -> str:
    """Return the state that the pod alone would give an execution."""
    if has_ended(pod):
        return "succeeded" if pod.status.phase == "Succeeded" else "failed"
    if pod.metadata.deletion_timestamp is not None:
        return "stopping"
    if not pod.spec.node_name:
        return "deploying"
    return "running" if is_ready(pod) else "preparing"


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
    """Return an execution's rows: its own while it has no pod, else one for each; None when all have ended. `known` was before."""
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
    entries = (Entry.of(None, pod, keys) for pod in pods if not has_ended(pod))
    return [Group(entry, (entry,)) for entry in entries]


REGION = "executions"
Status = tuple[StatusLine, str]  # with the advice, or ""
WELL = state_status("running")  # of an entry that needs no explanation


class ExecutionLine(ViewModel, frozen=True, gc=False):
    """One row, `id` its element's. `shape` is "single" for a pod or waiting execution on its own, else "head" or "member" of a group."""

    id: str
    shape: str
    execution_id: str
    name: str
    kind: str
    tier: str
    user: str
    project: str
    status: StatusLine
    advice: str
    since: datetime | None
    restarts: str
    cpu: str
    memory: str
    gpus: str
    used_cpu: str = ""
    used_memory: str = ""
    cpu_percent: int = 0  # used, of what was requested
    memory_percent: int = 0
    node: str = ""
    node_is_link: bool = False
    pod_namespace: str = ""
    pod_name: str = ""


def status_of(entry: Entry, diagnosis: Diagnosis | None, *, to_owner: bool = False) -> Status:
    """Return the state in a word with its cause in a sentence, and what to do next. `diagnosis` is that of the entry's pod."""
    message = "" if entry.is_member or entry.row is None else entry.row.words(to_owner=to_owner)
    return state_status(entry.state, message=message, diagnosis=diagnosis)


def change_with_time(entries: Iterable[Entry]) -> bool:
    """Return whether the status of one of them may change with time alone, which that of a ready pod without restarts cannot."""
    return any(entry.restarts > 0 or entry.pod_state in ("deploying", "preparing", "stopping") for entry in entries)


def runs_well(entry: Entry) -> bool:
    """Return whether the entry needs no explanation, because it runs and its pod is ready and was never restarted."""
    if entry.pod_state != "running" or entry.restarts:
        return False
    return entry.is_member or entry.row is None or entry.row.state == "running"


def entry_fragment(entry: Entry, status: Status, usage: Usage | None, *, sees_all: bool) -> Fragment:
    """Return the row of a pod, or of an execution that has no pod yet. `sees_all` makes its node a link."""
    # Several pods may name one execution that is not known, or not yet.
    is_one_of_several = entry.is_member or entry.row is None
    return _fragment(
        entry,
        *([entry.pod_name] if is_one_of_several else []),
        shape="member" if entry.is_member else "single",
        status=status,
        requests=entry.requests if entry.pod is not None else None,
        restarts=entry.restarts,
        used=[usage] if usage is not None else [],
        node=entry.node,
        node_is_link=sees_all,
    )


def changed_fragment(known: Fragment, entry: Entry, status: Status) -> Fragment:
    """Return the row of a pod that differs in its status alone, `known` being its row before, with the same usage."""
    assert isinstance(known.context, ExecutionLine)
    word, advice = status
    line = replace(known.context, status=word, advice=advice, since=entry.since, restarts=str(entry.restarts))
    return replace(known, context=line)


def head_fragment(
    group: Group, used: Sequence[Usage], trouble: Status | None = None, *, to_owner: bool = False, wait: str = ""
) -> Fragment:
    """Return a cluster's own row with the sums of the rows below; `trouble` is that of the head's pod, `wait` what is expected."""
    nodes = {member.pod.spec.node_name for member in group.entries if member.pod is not None}
    status, advice = cluster_status(group, trouble, to_owner=to_owner)
    return _fragment(
        group.head,
        shape="head",
        status=(with_note(status, wait), advice),
        requests=total(member.requests for member in group.entries),
        restarts=sum([member.restarts for member in group.entries]),
        used=used,
        node=plural(len(nodes - {""}), "node", "nodes"),
        node_is_link=False,
    )


def _fragment(
    entry: Entry,
    *names: str,
    shape: str,
    status: Status,
    requests: Amounts | None,
    restarts: int,
    used: Sequence[Usage],
    node: str,
    node_is_link: bool,
) -> Fragment:
    pod = entry.pod.metadata if entry.pod is not None else None
    cores, memory = sum([usage.cpu_millicores for usage in used]), sum([usage.memory_bytes for usage in used])
    line = ExecutionLine(
        id=element_id("row", entry.execution_id, *names),
        shape=shape,
        execution_id=entry.execution_id,
        name=entry.short_name,
        kind=entry.part or KINDS.get(entry.kind, entry.kind),
        tier=entry.tier,
        user=entry.user,
        project=entry.project,
        status=status[0],
        advice=status[1],
        since=entry.since,
        restarts=str(restarts),
        cpu=format_cores(requests.cpu) if requests else "",
        memory=format_bytes(requests.memory) if requests else "",
        gpus=str(requests.gpus) if requests and requests.gpus else "",
        used_cpu=format_cores(cores) if used else "",
        used_memory=format_bytes(memory) if used else "",
        cpu_percent=percent(cores, requests.cpu) if requests else 0,
        memory_percent=percent(memory, requests.memory) if requests else 0,
        node=node,
        node_is_link=node_is_link,
        pod_namespace=pod.namespace if pod else "",
        pod_name=entry.pod_name,
    )
    return Fragment(line.id, "executions/fragments/execution_row.html", line, region=REGION)


def cluster_status(group: Group, trouble: Status | None, *, to_owner: bool = False) -> Status:
    """Return a cluster's own status: its state, and how many workers run. `trouble` is that of the head's pod with a problem."""
    row, state = group.head.row, group.head.state
    status, _advice = state_status(state, message=row.words(to_owner=to_owner) if row else "")
    heads = [entry for entry in group.entries if entry.is_head]
    running = [entry.is_head for entry in group.entries if entry.pod_state == "running"]
    head_runs, workers_run, others = any(running), running.count(False), len(group.entries) - len(heads)
    total = plural(others, "worker", "workers") if heads else plural(others, "pod", "pods")
    count = ngettext("{count} of {total} runs.", "{count} of {total} run.", workers_run, total=total)
    if trouble is not None:
        problem, advice = trouble
        return StatusLine(problem.severity, status.word, f"{problem.note} {count}"), advice
    if heads and not head_runs:
        count = _("Its head is not running. {count}", count=count)
    if state == "running":
        return StatusLine(status.severity, status.word, count), ""
    has_started = state in ("deploying", "preparing") and head_runs and workers_run > 0
    note = f"{STARTED if has_started else status.note} {count}".strip()
    return StatusLine(status.severity, status.word, note), ""
