"""The Executions page: one row for each active pod of an execution, and one for each execution that has no pod yet; pure.

Filtering and sorting look at cheap facts only; sentences are made for the rows that somebody sees, so the page's cost follows
what it shows. A cluster's pods stay together below their execution, whatever the sort.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dashboard.viewmodels.execution_entry import Entry
from dashboard.viewmodels.executions_view import KINDS, TROUBLE, Bounds, Choices, ExecutionsView, bounds, offered
from dashboard.viewmodels.ids import element_id
from dashboard.viewmodels.listing import EmptyState, Paging
from dashboard.viewmodels.live import Fragment
from dashboard.viewmodels.nodes import Status
from dashboard.viewmodels.states import STATES, state_status
from grid.diagnosis.pods import Diagnosis
from grid.diagnosis.requests import Amounts, has_ended, total
from grid.kube.objects import Pod
from grid.labels import APP_COMPONENT, HEAD, Keys
from grid.metrics.usage import Usage
from grid.quantity import format_bytes, format_cores
from grid.runtime.executions import ExecutionRow
from grid.wording import plural

ROWS_PER_PAGE = 200
REGION = "executions"
_FRAGMENTS = "dashboard/fragments/"
_FINAL = ("succeeded", "stopped", "failed", "error")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Source:
    """What the page is made from. `rows` are those that the viewer may see; `orphans` are pods of executions that nobody knows."""

    rows: Collection[ExecutionRow]
    pods_of: Callable[[str], Sequence[Pod]]
    orphans: Collection[Pod]
    explain: Callable[[Pod], Diagnosis]
    usage_of: Callable[[str], Usage | None]
    keys: Keys
    sees_all: bool


@dataclass(frozen=True, slots=True)
class ExecutionLine:
    """One row. `shape`: a pod or waiting execution on its own, the head of a group, or a member of one."""

    shape: str
    execution_id: str
    name: str
    kind: str
    tier: str
    user: str
    project: str
    status: Status
    advice: str
    since: datetime | None
    restarts: int
    cpu: str
    memory: str
    gpus: str
    used_cpu: str = ""
    used_memory: str = ""
    node: str = ""
    node_is_link: bool = False
    pod_namespace: str = ""
    pod_name: str = ""


@dataclass(frozen=True, slots=True)
class _Group:
    """What stays together: the entries that match, `head` for a cluster's own row."""

    head: Entry
    entries: tuple[Entry, ...]
    has_head: bool

    def __len__(self) -> int:
        return len(self.entries) + self.has_head


def execution_rows(source: Source, view: ExecutionsView, now: datetime) -> list[Fragment]:
    """Region "executions" with the page that the view asks for, and the paging line."""
    every = list(_groups(source))
    limits = bounds(view)
    wanted = [group for one in every if (group := _matching(one, source, view, limits, now)) is not None]
    wanted.sort(key=lambda group: (group.head.since or _LONG_AGO, group.head.name), reverse=True)
    descending = view.descending if view.sort != "age" else not view.descending
    wanted.sort(key=lambda group: _SORT_KEYS[view.sort](group), reverse=descending)
    pages = list(_pages(wanted))
    page = min(view.page, max(1, len(pages)))
    shown = pages[page - 1] if pages else []
    fragments = [fragment for group in shown for fragment in _group_fragments(group, source)]
    if not fragments:
        empty = EmptyState("No execution matches.", "Clear the filter to see all that you may see.")
        if not view.is_filtered:
            empty = EmptyState("Nothing is running or waiting.", "Launch something, or look at what has ended.")
        fragments = [Fragment("executions-none", f"{_FRAGMENTS}executions_none.html", empty, region=REGION)]
    return [*fragments, _paging(wanted, pages, page, view)]


def _groups(source: Source) -> Iterator[_Group]:
    for row in source.rows:
        pods = source.pods_of(row.id)
        if row.state in _FINAL:
            pods = [pod for pod in pods if not has_ended(pod)]
            if not pods:
                continue
        head = Entry(row, None, source.keys)
        if row.kind != "cluster" and len(pods) <= 1:
            yield _Group(head, (Entry(row, pods[0], source.keys) if pods else head,), has_head=False)
        elif not pods:
            yield _Group(head, (head,), has_head=False)
        else:
            members = sorted(pods, key=_member_order)
            yield _Group(head, tuple(Entry(row, pod, source.keys, is_member=True) for pod in members), has_head=True)
    for pod in source.orphans:
        if not has_ended(pod):
            entry = Entry(None, pod, source.keys)
            yield _Group(entry, (entry,), has_head=False)


def _member_order(pod: Pod) -> tuple[bool, str]:
    return pod.metadata.labels.get(APP_COMPONENT, "") != HEAD, pod.metadata.name


def _matching(group: _Group, source: Source, view: ExecutionsView, limits: Bounds, now: datetime) -> _Group | None:
    """The group with its matching entries only; None when there are none."""
    if not view.is_filtered:
        return group
    kept = tuple(entry for entry in group.entries if _fits(entry, source, view, limits, now))
    return _Group(group.head, kept, group.has_head) if kept else None


def _fits(entry: Entry, source: Source, view: ExecutionsView, limits: Bounds, now: datetime) -> bool:
    row = entry.row
    chosen = (
        (view.kind, entry.kind),
        (view.tier, row.tier_id if row else entry.tier),
        (view.user, entry.user),
        (view.project, row.project_id if row else entry.project),
    )
    if any(wanted and wanted != actual for wanted, actual in chosen):
        return False
    if view.node and view.node.lower() not in entry.node.lower():
        return False
    if view.status == TROUBLE:
        if _status(entry, source)[0].severity != "problem":
            return False
    elif view.status and view.status != entry.state:
        return False
    return _within(entry, limits, now) and (not view.text or _mentions(entry, view.text.lower(), source))


def _within(entry: Entry, limits: Bounds, now: datetime) -> bool:
    if limits.age is not None and now - (entry.since or now) < limits.age:
        return False
    if limits.restarts is not None and entry.restarts < limits.restarts:
        return False
    if limits.cpu is None and limits.memory is None and limits.gpus is None:
        return True
    asked = entry.requests
    least = Amounts(limits.cpu or 0, limits.memory or 0, limits.gpus or 0)
    return asked.at_least(least) == asked


def _mentions(entry: Entry, text: str, source: Source) -> bool:
    """Cheap columns first; a sentence is made only where they do not have the text."""
    title = entry.row.title if entry.row else ""
    pod_name = entry.pod.metadata.name if entry.pod else ""
    words = (entry.name, title, pod_name, entry.execution_id, KINDS.get(entry.kind, entry.kind), entry.tier, entry.user)
    cheap = " ".join((*words, entry.project, STATES.get(entry.state, entry.state), entry.node)).lower()
    return text in cheap or text in _status(entry, source)[0].note.lower()


def _status(entry: Entry, source: Source) -> tuple[Status, str]:
    """The state in a word, why in a sentence, and what to do next."""
    diagnosis = source.explain(entry.pod) if entry.pod is not None else None
    message = entry.row.message if entry.row and not entry.is_member else ""
    return state_status(entry.state, message=message, diagnosis=diagnosis)


def _pages(groups: Iterable[_Group]) -> Iterator[list[_Group]]:
    """Groups stay whole; a page is full when it has its number of rows."""
    page: list[_Group] = []
    count = 0
    for group in groups:
        if page and count + len(group) > ROWS_PER_PAGE:
            yield page
            page, count = [], 0
        page.append(group)
        count += len(group)
    if page:
        yield page


def _group_fragments(group: _Group, source: Source) -> Iterator[Fragment]:
    if group.has_head:
        yield _fragment(_line(group.head, source, shape="head", of=group))
    for entry in group.entries:
        yield _fragment(_line(entry, source, shape="member" if entry.is_member else "single"))


def _fragment(line: ExecutionLine) -> Fragment:
    names = (
        (line.execution_id, line.pod_name) if line.shape == "member" or not line.execution_id else (line.execution_id,)
    )
    return Fragment(element_id("row", *names), f"{_FRAGMENTS}execution_row.html", line, region=REGION)


def _line(entry: Entry, source: Source, *, shape: str, of: _Group | None = None) -> ExecutionLine:
    status, advice = _status(entry, source) if of is None else (_together(of), "")
    asked = entry.requests
    restarts = entry.restarts
    if of is not None:
        asked = total(member.requests for member in of.entries)
        restarts = sum(member.restarts for member in of.entries)
    has_requests = entry.pod is not None or of is not None
    used_cpu, used_memory = _used((entry,) if of is None else of.entries, source)
    return ExecutionLine(
        shape=shape,
        execution_id=entry.execution_id,
        name=entry.short_name,
        kind=entry.part or KINDS.get(entry.kind, entry.kind),
        tier=entry.tier,
        user=entry.user,
        project=entry.project,
        status=status,
        advice=advice,
        since=entry.since,
        restarts=restarts,
        cpu=format_cores(asked.cpu) if has_requests else "",
        memory=format_bytes(asked.memory) if has_requests else "",
        gpus=str(asked.gpus) if has_requests and asked.gpus else "",
        used_cpu=used_cpu,
        used_memory=used_memory,
        node=entry.node if of is None else plural(len({member.node for member in of.entries if member.node}), "node"),
        node_is_link=source.sees_all and of is None,
        pod_namespace=entry.pod.metadata.namespace if entry.pod else "",
        pod_name=entry.pod.metadata.name if entry.pod else "",
    )


def _used(entries: Iterable[Entry], source: Source) -> tuple[str, str]:
    """CPU and memory as measured last, of all of them; "" while nothing is measured."""
    found = [usage for one in entries if one.pod is not None and (usage := source.usage_of(one.pod.metadata.key))]
    if not found:
        return "", ""
    return format_cores(sum(one.cpu_millicores for one in found)), format_bytes(sum(one.memory_bytes for one in found))


def _together(group: _Group) -> Status:
    """A cluster's own row: its state, and how many of the workers below run; its head is named while it does not."""
    row = group.head.row
    status, _ = state_status(group.head.state, message=row.message if row else "")
    note = _how_many_run(group.entries)
    if group.head.state == "running":
        return Status(status.severity, status.word, note)
    return Status(status.severity, status.word, f"{status.note} {note}".strip())


def _how_many_run(entries: Sequence[Entry]) -> str:
    heads, others = [one for one in entries if one.is_head], [one for one in entries if not one.is_head]
    running = sum(one.state == "running" for one in others)
    what = plural(len(others), "worker" if heads else "pod")
    note = f"{running} of {what} {'runs' if running == 1 else 'run'}."
    return note if not heads or any(one.state == "running" for one in heads) else f"Its head does not run. {note}"


def _paging(wanted: Sequence[_Group], pages: Sequence[Sequence[_Group]], page: int, view: ExecutionsView) -> Fragment:
    pods = sum(len(group.entries) for group in wanted)
    sentence = plural(len(wanted), "execution")
    if pods != len(wanted):
        sentence += f", {plural(pods, 'row')}"
    if len(pages) > 1:
        before = sum(map(len, pages[: page - 1]))
        sentence = f"{before + 1:,} to {before + len(pages[page - 1]):,} of {sentence}"
    paging = Paging(
        sentence,
        previous=view.query(page=page - 1) if page > 1 else "",
        next=view.query(page=page + 1) if page < len(pages) else "",
    )
    return Fragment("executions-paging", f"{_FRAGMENTS}paging.html", paging)


_STATE_ORDER = {state: place for place, state in enumerate(STATES)}


def _largest(of: Callable[[Entry], Any]) -> Callable[[_Group], Any]:
    return lambda group: max(of(entry) for entry in group.entries)


_SORT_KEYS: dict[str, Callable[[_Group], Any]] = {
    "name": lambda group: group.head.name.lower(),
    "kind": lambda group: group.head.kind,
    "tier": lambda group: group.head.tier.lower(),
    "user": lambda group: group.head.user.lower(),
    "project": lambda group: group.head.project.lower(),
    "status": lambda group: _STATE_ORDER.get(group.head.state, len(_STATE_ORDER)),
    "node": _largest(lambda entry: entry.node),
    "age": lambda group: group.entries[0].since or _LONG_AGO,
    "restarts": _largest(lambda entry: entry.restarts),
    "cpu": lambda group: sum(entry.requests.cpu for entry in group.entries),
    "memory": lambda group: sum(entry.requests.memory for entry in group.entries),
    "gpus": lambda group: sum(entry.requests.gpus for entry in group.entries),
}


def choices(rows: Iterable[ExecutionRow], view: ExecutionsView) -> Choices:
    """What the filter's lists offer."""
    rows = list(rows)
    return Choices(
        tiers=offered(((row.tier_id, row.tier_name) for row in rows), view.tier),
        users=offered(((row.owner_username, row.owner_username) for row in rows), view.user),
        projects=offered(((row.project_id, row.project_name) for row in rows), view.project),
    )
