"""The overview, live: the whole cluster at one look, for operators, auditors and admins."""

import asyncio
from collections.abc import Collection, Hashable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from heapq import nlargest
from typing import NamedTuple

from django.http import QueryDict

from dashboard.executions.pages.executions import EXECUTIONS, ExecutionList, ExecutionLists
from dashboard.executions.viewmodels.execution_groups import Group
from dashboard.nodes.pages.infrastructure import INFRASTRUCTURE, NodeList, NodeLists
from dashboard.nodes.records import admin_facts, environments_never_started
from dashboard.nodes.viewmodels import overview as viewmodel
from dashboard.nodes.viewmodels.infrastructure import InfrastructureView
from dashboard.nodes.viewmodels.misconfigured import AdminFacts, Misconfigured, admin_fragments
from dashboard.nodes.viewmodels.pools import in_order
from dashboard.platformhealth.records import stored_parts
from dashboard.platformhealth.viewmodels import platform_health
from dashboard.shell.access import Viewer, may_administer, may_observe
from dashboard.shell.pages.lists import BEHIND_SECONDS, FIRST_PAINT_SECONDS
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.periodic import PeriodicRead
from dashboard.shell.viewmodels.live import Fragment
from dashboard.starts.expected_waits import EXPECTED
from dashboard.tiers.tier_records import known_shapes
from dashboard.usage.viewmodels.contention import contended_nodes
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.kube.hub import Topic
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime
from grid.runtime.contention import TOPIC as CONTENTION
from grid.runtime.executionrows import ExecutionRow
from grid.runtime.executions import TOPIC

# How old what is read from the database may be, in seconds.
DATABASE_SECONDS, ADMIN_SECONDS, ENVIRONMENTS_SECONDS = 5.0, 15.0, 60.0
REQUEST_SECONDS = 1.0  # of what admins change, when the page is requested
_FAILED = ("failed", "error")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_VIEWS = (viewmodel.TROUBLE, viewmodel.QUEUED, viewmodel.DEPLOYING, viewmodel.PREPARING)


class RecentFailures:
    """The executions that failed within the last hour, which is how long the runtime keeps them."""

    topic: Topic = (TOPIC, "failures", "")

    def __init__(self, runtime: Runtime) -> None:
        self._hub = runtime.hub
        self._rows = {row.id: row for row in runtime.executions.values() if row.state in _FAILED}
        runtime.executions.subscribe(self._changed)

    def __len__(self) -> int:
        return len(self._rows)

    def latest(self, count: int) -> list[ExecutionRow]:
        return nlargest(count, self._rows.values(), key=lambda row: (row.ended_at or _LONG_AGO, row.id))

    def _changed(self, old: ExecutionRow | None, new: ExecutionRow | None) -> None:
        if new is not None and new.state in _FAILED:
            self._rows[new.id] = new
        elif old is None or self._rows.pop(old.id, None) is None:
            return
        self._hub.publish(self.topic)


class OverviewSources:
    """What the overview reads of one runtime besides the lists that it shares with other pages."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.failures = RecentFailures(runtime)
        health_now = partial(database.pages.run, lambda: stored_parts(LOCAL, runtime.clock()))
        self.health = PeriodicRead(health_now, clock=runtime.clock)
        self.admin = PeriodicRead(self._read_admin_facts, clock=runtime.clock)
        self._environments = PeriodicRead(partial(database.pages.run, environments_never_started), clock=runtime.clock)

    async def _read_admin_facts(self) -> AdminFacts:
        unstarted: Sequence[Misconfigured] = await self._environments.value(ENVIRONMENTS_SECONDS) or ()
        pools, limits = await known_shapes(self.runtime), await self.runtime.limits()
        return await database.pages.run(admin_facts, pools, unstarted, limits)


class OverviewFacts(NamedTuple):
    nodes: NodeList
    work: Sequence[ExecutionList]  # in the order of `_VIEWS`
    database_problems: Sequence[str]
    lights: Sequence[platform_health.HealthPart]  # that the controller has stored
    admin: AdminFacts | None


class OverviewPage(LivePage[None, OverviewFacts]):
    name = "overview"
    refusal = _("Only operators, auditors and admins can see the overview of the cluster.")
    # What is read of the database is read beside the page.
    reads_database = False
    # Something always changes on it, and nobody reads faster.
    rest_seconds = 1.0
    regions = frozenset({"troubles", "failures", "waiting", "pool-map"})

    def __init__(self) -> None:
        self._sources: OverviewSources | None = None

    def view(self, query: QueryDict) -> None:
        return None

    def allowed(self, runtime: Runtime, viewer: Viewer, view: None) -> bool:
        return may_observe(viewer)

    def audience(self, viewer: Viewer) -> Hashable:
        return "admins" if may_administer(viewer) else "observers"

    async def read(self, runtime: Runtime, viewer: Viewer, view: None) -> OverviewFacts:
        return await self._read(runtime, viewer, within=None, admin_seconds=ADMIN_SECONDS)

    async def read_in_time(self, runtime: Runtime, viewer: Viewer, view: None) -> OverviewFacts:
        return await self._read(runtime, viewer, within=FIRST_PAINT_SECONDS, admin_seconds=REQUEST_SECONDS)

    def topics(self, runtime: Runtime, viewer: Viewer, view: None, facts: OverviewFacts) -> Collection[Topic]:
        nodes, work = facts.nodes.lists.pools_topic, {executions.topic for executions in facts.work}
        return {nodes, runtime.config_maps.name, RecentFailures.topic, CONTENTION, *work}

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: None, facts: OverviewFacts, now: datetime
    ) -> Sequence[Fragment]:
        sources = self._sources_of(runtime)
        parts = (
            platform_health.cluster_part(runtime.freshness(), now),
            platform_health.controller_part(*runtime.controller_state()),
            platform_health.caches_part(runtime.caches()),
            platform_health.metrics_part(runtime.usage.unavailable),
            platform_health.database_part(facts.database_problems, sources.health.silent_since),
        )
        return [
            platform_health.health(parts, facts.lights),
            *_work(EXECUTIONS.lists_in(runtime), facts.work, sources.failures),
            contended_nodes(runtime.contention.worst, runtime.executions.get),
            *_pools(facts.nodes.lists, facts.nodes),
            *(admin_fragments(facts.admin) if may_administer(viewer) else ()),
        ]

    def tick(self, runtime: Runtime, viewer: Viewer, view: None, facts: OverviewFacts) -> float:
        executions = EXECUTIONS.lists_in(runtime)
        is_behind = facts.nodes.lists.is_behind(facts.nodes) or any(map(executions.is_behind, facts.work))
        return BEHIND_SECONDS if is_behind else self.tick_seconds

    async def _read(
        self, runtime: Runtime, viewer: Viewer, *, within: float | None, admin_seconds: float
    ) -> OverviewFacts:
        sources, executions = self._sources_of(runtime), EXECUTIONS.lists_in(runtime)
        nodes = await INFRASTRUCTURE.lists_in(runtime)
        reading = asyncio.gather(*(executions.list_of(viewer, view, within=within) for view in _VIEWS))
        nodes_shown, work = await asyncio.gather(nodes.list_of(InfrastructureView(), within=within), reading)
        if any(len(executions.window) for executions in work[1:]):
            EXPECTED.begin(runtime)
        problems, lights = await sources.health.value(DATABASE_SECONDS) or ((), ())
        admin = await sources.admin.value(admin_seconds) if may_administer(viewer) else None
        return OverviewFacts(nodes_shown, work, problems, lights, admin)

    def _sources_of(self, runtime: Runtime) -> OverviewSources:
        if self._sources is None or self._sources.runtime is not runtime:
            self._sources = OverviewSources(runtime)
        return self._sources


def _work(lists: ExecutionLists, work: Sequence[ExecutionList], failures: RecentFailures) -> list[Fragment]:
    unfinished = [executions for executions in work if lists.progress_of(executions) is not None]
    trouble, queued, deploying, _preparing = work
    numbers = {view.status: len(executions.window) for view, executions in zip(_VIEWS, work, strict=True)}
    counts = viewmodel.work_counts(active=len(lists.items), failed=len(failures), is_whole=not unfinished, **numbers)
    worst = [_line(lists, group) for group in _longest(lists, trouble)[: viewmodel.WORST_SHOWN]]
    return [
        counts,
        *viewmodel.work_lines("troubles", worst),
        *viewmodel.work_lines("failures", map(viewmodel.failed_line, failures.latest(viewmodel.FAILED_SHOWN))),
        *viewmodel.waiting_lines(_waiting(lists, queued, deploying)),
    ]


def _longest(lists: ExecutionLists, asked: ExecutionList) -> list[Group]:
    """Return those that have been in the list longest and are not gone, at most a page of the Executions page."""
    return [group for group in asked.page(1).items if group.key in lists.items]


def _line(lists: ExecutionLists, group: Group) -> viewmodel.WorkLine:
    return viewmodel.work_line(group, lists.rows.status(group.entries[0]))


def _waiting(
    lists: ExecutionLists, queued: ExecutionList, deploying: ExecutionList
) -> Iterator[viewmodel.WaitingPlace]:
    for title, view, asked in (
        (_("In the queue"), viewmodel.QUEUED, queued),
        (_("For a node"), viewmodel.DEPLOYING, deploying),
    ):
        if groups := _longest(lists, asked):
            line = _line(lists, groups[0])
            # Waiting does not end a problem.
            expected = EXPECTED.note(groups[0].head.row, lists.runtime) if line.status.severity == "wait" else ""
            rows = [group.head.row for group in groups] if view is viewmodel.QUEUED else []
            reasons = [viewmodel.queue_reason(row) for row in rows if row is not None]
            yield viewmodel.waiting(title, view, len(asked.window), line, reasons, expected=expected)


def _pools(lists: NodeLists, nodes: NodeList) -> list[Fragment]:
    is_whole = lists.progress_of(nodes) is None
    groups, pending = lists.groups(), lists.pending()
    fragments = [viewmodel.nodes_summary(lists.pools.values(), is_whole=is_whole)]
    for name in in_order(lists.names(), lists.pools):
        pool, cells = lists.pools.get(name), lists.cells.of(name)
        fragments += viewmodel.pool_fragments(name, pool, groups.get(name), pending.get(name, 0), cells)
    return fragments


OVERVIEW = OverviewPage()
