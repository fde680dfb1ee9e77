"""Puts the rows of the Executions page into words; pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from dashboard.executions.viewmodels.execution_entry import Entry
from dashboard.executions.viewmodels.execution_groups import Group
from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from dashboard.shell.viewmodels.states import KINDS, STARTED, StatusLine, state_status
from dashboard.starts.viewmodels.expected_wait import with_note
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import plural
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.requests import Amounts, total
from grid.metrics.usage import Usage

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
    """Return a cluster's own status: its state, and how many of its workers run; the head is mentioned while it does not run. `trouble` is
    the status of the head's pod when that has a problem."""
    row, state = group.head.row, group.head.state
    status, _advice = state_status(state, message=row.words(to_owner=to_owner) if row else "")
    heads = [entry for entry in group.entries if entry.is_head]
    running = [entry for entry in group.entries if entry.pod_state == "running"]
    head_runs, others = any(entry.is_head for entry in running), len(group.entries) - len(heads)
    workers_run = len([entry for entry in running if not entry.is_head])
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
