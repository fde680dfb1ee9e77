"""One execution's page, live: the stored record, overlaid with the present state of its pods and its pool."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings
from django.http import QueryDict

from dashboard.executions.kinds import Presence, face_of
from dashboard.executions.pages.execution_pods import POD_STATES, pods_of
from dashboard.executions.records import read_record
from dashboard.executions.viewmodels.execution import (
    CONTRIBUTING,
    Companion,
    CompanionCard,
    ExecutionRecord,
    Head,
    Person,
    facts,
    head_of,
    steps,
)
from dashboard.executions.viewmodels.execution_actions import actions, leaving
from dashboard.executions.viewmodels.run_files import run_files
from dashboard.executions.viewmodels.timeline import timeline
from dashboard.shell.access import Viewer, may_observe, may_operate, may_see_execution
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.events import history
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import kind_name, state_status
from dashboard.starts.expected_waits import EXPECTED, stands_still
from dashboard.starts.viewmodels.startup import StartMeasures, of_phases, waterfall
from dashboard.usage.viewmodels.contention import short_of_cpu
from dashboard.usage.viewmodels.sizehints import size_notes
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.diagnosis.startup import StartFacts, start_phases
from grid.diagnosis.startupevents import start_events
from grid.kube.events import topic_about
from grid.kube.hub import NAME, Topic
from grid.kube.objects import Event, Pod, is_ready
from grid.runtime import Runtime
from grid.runtime.contention import EXECUTION as SHORT_OF_CPU, TOPIC as CONTENTION
from grid.runtime.executionrows import ExecutionRow
from grid.runtime.executions import OWNER, TOPIC as EXECUTIONS
from grid.runtime.starts import STARTING

RECORD_SECONDS = 2.0  # the controller adds lines of history without writing the execution's row
_RECORDS_KEPT = 500


@dataclass(frozen=True, slots=True)
class ExecutionView:
    id: str
    tab: str = ""


def person(viewer: Viewer, record: ExecutionRecord | ExecutionRow) -> Person:
    """Return the viewer's rights. Contributors may open a cluster's web page, and who is chosen by name a shared app; only the project's
    owner, operators and admins may stop or change another user's execution. An owner who left the project may still stop it."""
    is_owner, role = viewer.id == record.owner_id, record.project_roles.get(viewer.id)
    is_shared = isinstance(record, ExecutionRecord) and viewer.id in record.shared_with and role is not None
    contributes, is_operator = role in CONTRIBUTING, may_operate(viewer)
    return Person(
        may_open=is_shared or (contributes and (is_owner or record.kind == "cluster")),
        may_stop=is_owner or is_operator or role == "owner",
        is_operator=is_operator,
        sees_all=may_observe(viewer),
        has_left=is_owner and role is None,
        contributes=contributes,
        is_owner=is_owner,
        is_member=role is not None,
        may_share=is_owner and contributes and record.kind == "app",
    )


class ExecutionPage(LivePage[ExecutionView, ExecutionRecord | None]):
    name = "execution"
    regions = frozenset({"timeline", "events", "workers"})
    refusal = _("This execution does not exist, or you have no access to it.")

    def __init__(self) -> None:
        self._records: OrderedDict[str, tuple[float, object, ExecutionRecord | None]] = OrderedDict()

    def view(self, query: QueryDict) -> ExecutionView:
        tab = str(query.get("tab", ""))
        return ExecutionView(str(query.get("id", ""))[:16], tab if tab == "events" else "")

    def allowed(self, runtime: Runtime, viewer: Viewer, view: ExecutionView) -> bool:
        row = runtime.executions.get(view.id)
        return row is not None and may_see_execution(viewer, row)

    def still_allowed(self, runtime: Runtime, viewer: Viewer, view: ExecutionView) -> bool:
        """Return True also when the execution has left the runtime's list, an hour after its end: the stored page stays visible."""
        return runtime.executions.get(view.id) is None or self.allowed(runtime, viewer, view)

    def remember(
        self, runtime: Runtime, execution_id: str, record: ExecutionRecord | None, before: ExecutionRow | None
    ) -> None:
        """Keep a record that was just read, so that a page shows a write before the snapshot has it: a browser without scripts gets no
        later update. `before` is the snapshot's row when the reading began; once the row differs, the record is read again."""
        self._records[execution_id] = (asyncio.get_running_loop().time(), (id(runtime), before), record)
        self._records.move_to_end(execution_id)
        if len(self._records) > _RECORDS_KEPT:
            self._records.popitem(last=False)

    async def read(self, runtime: Runtime, viewer: Viewer, view: ExecutionView) -> ExecutionRecord | None:
        record = await self._record(runtime, view.id)
        if record is not None and record.state in STARTING:
            await EXPECTED.value(runtime)
        return record

    def topics(
        self, runtime: Runtime, viewer: Viewer, view: ExecutionView, record: ExecutionRecord | None
    ) -> Collection[Topic]:
        """Return the topics of the execution, its pods, events and pool's nodes, and of its companion."""
        topics: set[Topic] = {(EXECUTIONS, NAME, view.id), runtime.usage.name, (CONTENTION, SHORT_OF_CPU, view.id)}
        if record is None:
            return topics
        together = {record.id: record.node_pool}
        if record.companion is not None:
            together[record.companion.id] = record.companion.node_pool
        for id, pool in together.items():
            for pod in pods_of(runtime, id):
                topics |= set(runtime.explainer.topics(pod))
                topics.add(topic_about("Pod", pod.metadata.name, settings.GRID_NAMESPACE))
            topics |= {(EXECUTIONS, NAME, id), ("pods", "execution", id), ("autoscalers", "execution", id)}
            topics.add(("nodes", "pool", pool))
        if record.is_restarting:
            topics.add((EXECUTIONS, OWNER, str(record.owner_id)))  # the execution that follows
        return topics | {topic_about(kind, name, settings.GRID_NAMESPACE) for kind, name in _objects(runtime, record)}

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: ExecutionView, record: ExecutionRecord | None, now: datetime
    ) -> Sequence[Fragment]:
        if record is None or not may_see_execution(viewer, record):
            return []
        return execution_fragments(runtime, record, person(viewer, record), view, now)

    async def _record(self, runtime: Runtime, execution_id: str) -> ExecutionRecord | None:
        """Return the record, read again only when the execution's row has changed or after `RECORD_SECONDS`: pods change far more often."""
        row, at = runtime.executions.get(execution_id), asyncio.get_running_loop().time()
        known = self._records.get(execution_id)
        if known is not None and known[1] == (id(runtime), row) and 0 <= at - known[0] < RECORD_SECONDS:
            return known[2]
        record = await database.pages.run(read_record, execution_id)
        self.remember(runtime, execution_id, record, row)
        return record


def present_head(runtime: Runtime, record: ExecutionRecord, viewer: Person, now: datetime) -> Head:
    """Return what the page says first: the state and its cause, for who takes the history with them."""
    return _head(runtime, record, _present(runtime, record, _pods(runtime, record), viewer, now), viewer, now)


def execution_fragments(
    runtime: Runtime, record: ExecutionRecord, viewer: Person, view: ExecutionView, now: datetime
) -> list[Fragment]:
    """Return all fragments of the page, also for an execution that ended long ago."""
    pods = _pods(runtime, record)
    shown = _present(runtime, record, pods, viewer, now)
    node = shown.pod.spec.node_name if shown.pod is not None else ""
    links = [(pod.metadata.namespace, pod.metadata.name) for pod in shown.pods]
    events = _events(runtime, record, pods)
    victim = None if record.is_final else runtime.contention.victims.get(record.id)
    used = record.size if viewer.is_owner or viewer.sees_all else None
    can_launch = viewer.is_owner and not viewer.has_left
    job_of = record.project_id if record.kind == "job" and viewer.is_member else ""
    fragments = [
        Fragment("head", "executions/fragments/execution_head.html", _head(runtime, record, shown, viewer, now)),
        Fragment("leaving", "executions/fragments/execution_leaving.html", leaving(record, viewer)),
        *face_of(record.kind).fragments(record, viewer),
        actions(record, viewer, is_ready=shown.pod is not None and is_ready(shown.pod)),
        steps(record),
        waterfall(_start(record, shown, events, now), record.usual_start, is_final=record.is_final),
        *size_notes(used, execution_id=record.id, workspace_id=record.workspace_id, is_owner=can_launch),
        short_of_cpu(victim, record.kind, is_owner=viewer.is_owner, sees_all=viewer.sees_all),
        facts(record, viewer, pods=links, node=node, workers=shown.workers, now=now),
        run_files(
            record.files, state=record.state, is_final=record.is_final, contributes=viewer.contributes, job_of=job_of
        ),
        *shown.fragments,
    ]
    if record.companion is not None:
        fragments.append(_companion(runtime, record.companion, now, to_owner=viewer.is_owner))
    if view.tab == "":
        assigned = "" if record.has_members else node or record.node_name
        fragments += timeline(record, events, shown.nodes, assigned_node=assigned, to_owner=viewer.is_owner)
    elif view.tab == "events":
        fragments += history(events)
    return fragments


def _head(runtime: Runtime, record: ExecutionRecord, shown: Presence, viewer: Person, now: datetime) -> Head:
    reader = record.reader(is_owner=viewer.is_owner)
    wait = EXPECTED.line(record.id, record.state, now, reader, stands_still=stands_still(runtime))
    return head_of(record, shown.diagnosis, viewer, wait)


def _pods(runtime: Runtime, record: ExecutionRecord) -> list[Pod]:
    pods = pods_of(runtime, record.id)
    return sorted(pods, key=lambda pod: (pod.metadata.name != record.object_name, pod.metadata.name))


def _present(runtime: Runtime, record: ExecutionRecord, pods: Sequence[Pod], viewer: Person, now: datetime) -> Presence:
    """Return what its kind shows of its pods, without the programs' messages for those who may not read them."""
    shown = face_of(record.kind).present(runtime, record, pods, viewer, now)
    if shown.diagnosis is not None and not viewer.may_read:
        return replace(shown, diagnosis=replace(shown.diagnosis, evidence=()))
    return shown


def _companion(runtime: Runtime, other: Companion, now: datetime, *, to_owner: bool) -> Fragment:
    row = runtime.executions.get(other.id)
    state = row.state if row else other.state
    status, _advice = state_status(state, message=row.words(to_owner=to_owner) if row else "")
    sentence, kind = status.note, other.kind_record.words or kind_name(other.kind)
    summary = face_of(other.kind).summary(runtime, other, now) if state in POD_STATES else None
    if summary is not None:
        sentence = summary.sentence if state == "running" else state_status(state, diagnosis=summary)[0].note
    card = CompanionCard(other.id, kind, other.name, status.word, status.severity, sentence)
    return Fragment("companion", "executions/fragments/companion.html", card)


def _start(record: ExecutionRecord, shown: Presence, events: Sequence[Event], now: datetime) -> StartMeasures | None:
    """Return the stored start, or while it starts what is known of it now; None where it was never measured."""
    if record.start is not None or record.state not in STARTING:
        return record.start
    pod = shown.pod
    own = [event for event in events if pod is not None and event.involved_object.name == pod.metadata.name]
    node_name = pod.spec.node_name if pod is not None else ""
    facts = StartFacts(
        requested_at=record.requested_at,
        admitted_at=next((line.at for line in record.lifecycle if line.to_state == "deploying"), None),
        until=now,
        ran=False,
        pod=pod,
        events=start_events(own, pod),
        node=next((node for node in shown.nodes if node.metadata.name == node_name), None),
        is_cluster=record.has_members,
        has_cluster=record.kind == "job" and record.companion is not None,
    )
    return of_phases(start_phases(facts))


def _events(runtime: Runtime, record: ExecutionRecord, pods: Sequence[Pod]) -> list[Event]:
    uids = {pod.metadata.name: pod.metadata.uid for pod in pods}
    events = [
        event
        for kind, name in _objects(runtime, record)
        for event in runtime.events.about(
            kind=kind, name=name, namespace=settings.GRID_NAMESPACE, uid=uids.get(name, "") if kind == "Pod" else ""
        )
    ]
    return sorted(events, key=lambda event: (event.last_seen or record.requested_at, event.metadata.name))


def _objects(runtime: Runtime, record: ExecutionRecord) -> list[tuple[str, str]]:
    """Return the kinds and names of the objects that events may be about: pods, also a deleted one, and what makes them."""
    names = dict.fromkeys([*(pod.metadata.name for pod in pods_of(runtime, record.id)), record.object_name])
    return [*(("Pod", name) for name in names), *face_of(record.kind).objects(record)]


EXECUTION = ExecutionPage()
