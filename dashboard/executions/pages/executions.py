"""The Executions page, live: all running and waiting executions that the viewer may see.

Open pages share lists. A group is rebuilt when one of its pods, its row, or an event about it has changed.
"""

import asyncio
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nlargest, nsmallest
from itertools import islice
from operator import attrgetter
from weakref import WeakValueDictionary

from django.conf import settings
from django.http import QueryDict

from dashboard.executions.pages.execution_pods import pods_of
from dashboard.executions.pages.execution_rows import GOOD_FOR, ExecutionRows, PageRows, is_starting
from dashboard.executions.viewmodels.execution_groups import Group, change_with_time, group_of, orphan_groups
from dashboard.executions.viewmodels.executions import ROWS_PER_PAGE, GroupFilter, page_fragments, window_of
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.access import Role, Viewer, may_observe, may_see_execution
from dashboard.shell.pages.lists import BEHIND_SECONDS, FIRST_PAINT_SECONDS, LiveList, LiveLists
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.slices import SharedBreath
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.window import Page
from dashboard.starts.expected_waits import EXPECTED
from grid.core.labels import Keys
from grid.kube.hub import Topic
from grid.kube.objects import Event, Node, Pod
from grid.runtime import Runtime
from grid.runtime.caches import id_of
from grid.runtime.executionrows import ExecutionRow
from grid.runtime.executions import TOPIC
from grid.runtime.roomchanges import room_topic

_NO_ROWS = PageRows()
_AN_OBSERVER = Viewer(id=0, username="", role=Role.OPERATOR)
_STATE_SINCE = attrgetter("state_since")
WORDED_AT_ONCE = 20  # rows, 3 ms: less than a slice, without waiting for a turn
FIRST_LOOKED_AT = 2 * ROWS_PER_PAGE  # executions, in the order of the page, for which a first paint has the time
WARMED_SECONDS = 1.0  # between two looks whether the list that is kept is there
LOOKED_THROUGH_AT_ONCE = 2_000  # of their rows, some tenths of a millisecond


class ExecutionList(LiveList[Group]):
    """One view for one user, or for all users who see every execution."""

    def __init__(self, viewer: Viewer, view: ExecutionsView, filter: GroupFilter) -> None:
        super().__init__(window_of(view), ROWS_PER_PAGE)
        self.viewer = viewer
        self.filter = filter
        self._rows: dict[int, PageRows] = {}  # as they were shown last, by page
        self._view = view
        self._sees_all = may_observe(viewer)

    @property
    def bucket(self) -> Hashable:
        if not self._sees_all:
            return self.viewer.id
        if self._view.user:
            return "user", self._view.user
        return ("project", self._view.project) if self._view.project else "all"

    @property
    def reader(self) -> int | None:
        """The person for whom its rows are put into words; None when they are for all who see everything."""
        return None if self._sees_all else self.viewer.id

    @property
    def is_oldest_first(self) -> bool:
        return self._view.sort == "age" and self._view.descending

    @property
    def changes_with_time(self) -> bool:
        return self.filter.looks_at_statuses or self.filter.looks_at_ages

    def rows_of(self, number: int, shown: Page[Group], rows: ExecutionRows, now: datetime) -> list[Fragment]:
        """Return the rows of a page, of which those are made again that have changed since they were shown last."""
        known = rows.of_page(shown.items, self._rows.get(number, _NO_ROWS), viewer_id=self.reader, now=now)
        self._rows = {page: rows for page, rows in self._rows.items() if self.is_shown(page)} | {number: known}
        return known.fragments

    def exchanged(self, number: int) -> list[Group]:
        """Return the groups of a page that are not the ones that were shown last."""
        known = self._rows.get(number, _NO_ROWS)
        return [group for _place, group in known.exchanged(self.page(number).items)]

    def rooms(self, number: int) -> set[Topic]:
        """Return the topics of the pools for whose nodes pods of a page wait, as it was shown last."""
        known = self._rows.get(number, _NO_ROWS)
        if known.are_settled:
            return set()
        return {room_topic(pool) for rows in known.rows for pool, _ in rows.awaited}

    def awaits_start(self, number: int) -> bool:
        """Return whether a page shows an execution that is starting. One that came since the page was shown last is not noticed yet."""
        known = self._rows.get(number)
        if known is not None and not known.awaits_start:
            return False
        return any(map(is_starting, self.page(number).items))

    def is_restless(self, number: int, now: datetime) -> bool:
        """Return whether time alone may soon change the texts of a page, as it was shown last."""
        return self._rows.get(number, _NO_ROWS).good_until <= now + GOOD_FOR

    def narrowed(self, item: Group, now: datetime) -> Group | None:
        row = item.head.row
        if self._sees_all or (row is not None and may_see_execution(self.viewer, row)):
            return self.filter.narrowed(item, now)
        return None


class ExecutionLists(LiveLists[Group, ExecutionList]):
    """All lists of executions of one runtime, used on its event loop only."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime.hub, TOPIC)
        self.runtime = runtime
        self.rows = ExecutionRows(runtime)
        self._wording = asyncio.Lock()  # so that the slices of many pages do not add up
        self._labels = Keys.under(settings.LABEL_PREFIX)
        self._filters = WeakValueDictionary[ExecutionsView, GroupFilter]()  # of the lists that there are
        self._restless: set[str] = set()  # groups whose status changes with time
        self._unmade = dict.fromkeys([row.id for row in runtime.executions.values()])
        self._unmade |= dict.fromkeys(runtime.pods.values_of("execution"))
        runtime.pods.subscribe(self._pod_changed)
        runtime.executions.subscribe(self._execution_changed)
        runtime.events.subscribe(self._event_changed)
        runtime.nodes.subscribe(self._node_changed)

    def warm_up(self) -> None:
        """Begin the list that observers see first, and keep it."""
        view = ExecutionsView()
        self._warm.add(("observers", view))
        self._known_or_begun(("observers", view), lambda: self._empty(_AN_OBSERVER, view))

    async def list_of(self, viewer: Viewer, view: ExecutionsView, *, within: float | None = None) -> ExecutionList:
        audience = "observers" if may_observe(viewer) else viewer.id
        first = view if view.page == 1 else replace(view, page=1)
        return await self.known_or((audience, first), lambda: self._empty(viewer, first), within=within)

    async def put_into_words(self, asked: ExecutionList, number: int) -> None:
        """Make the rows of a page that have changed since it was shown last, in slices: 200 rows in one step would take 30 ms."""
        exchanged = asked.exchanged(number)
        if len(exchanged) <= WORDED_AT_ONCE:
            return
        async with SharedBreath(self._wording) as breath:
            for group in exchanged:
                if group.key in self.items:  # it may have gone meanwhile
                    self.rows.of(group, viewer_id=asked.reader, now=self._now())
                    await breath.take()

    def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        super()._enter(loop)
        self._wording = asyncio.Lock()

    def _empty(self, viewer: Viewer, view: ExecutionsView) -> ExecutionList:
        wanted = replace(view, sort="age", descending=False)
        filter = self._filters.setdefault(wanted, GroupFilter(wanted, self.rows.status))
        return ExecutionList(viewer, view, filter)

    def _now(self) -> datetime:
        return self.runtime.clock()

    def _items_of(self, source: str) -> Mapping[str, Group]:
        pods, row = pods_of(self.runtime, source), self.runtime.executions.get(source)
        if row is None:
            return {group.key: group for group in orphan_groups(pods, self._labels)}
        group = group_of(row, pods, self._labels, known=self.items.get(row.id))
        return {} if group is None else {group.key: group}

    def _to_recheck(self, asked: ExecutionList) -> Iterable[str]:
        if asked.filter.looks_at_statuses:
            yield from tuple(self._restless)
        if asked.filter.looks_at_ages:
            for source in self._sources(asked):
                yield from (
                    key for key in self._keys_of.get(source, ()) if asked.window.get(key) is not self.items[key]
                )

    def _sources(self, asked: ExecutionList) -> Sequence[str]:
        return (
            super()._sources(asked) if may_observe(asked.viewer) else [row.id for row in self._rows_for(asked.viewer)]
        )

    def _shown_first(self, asked: ExecutionList) -> Iterator[Collection[str]]:
        """Yield the active executions whose state is the newest, or the oldest: it is about as old as their pods. Sorting all would take
        longer than a slice."""
        rows, best = iter(self._rows_for(asked.viewer)), list[ExecutionRow]()
        best_of = nsmallest if asked.is_oldest_first else nlargest
        while some := list(islice(rows, LOOKED_THROUGH_AT_ONCE)):
            active = [row for row in some if row.ended_at is None]
            best = best_of(FIRST_LOOKED_AT, [*best, *active], key=_STATE_SINCE)
            if len(some) == LOOKED_THROUGH_AT_ONCE:
                yield ()
        yield dict.fromkeys([row.id for row in best])

    def _rows_for(self, viewer: Viewer) -> Sequence[ExecutionRow]:
        executions = self.runtime.executions
        return list(executions.values() if may_observe(viewer) else executions.seen_by(viewer.id))

    def _buckets_of(self, item: Group) -> Iterable[Hashable]:
        row = item.head.row
        if row is None:
            return "all", ("user", item.head.user), ("project", item.head.project)
        # A project has many members, most of whom have no list.
        members = row.project_roles.keys() & self._buckets.keys()
        return "all", ("user", row.owner_username), ("project", row.project_id), row.owner_id, *members

    def _replaced(self, key: str, old: Group | None, new: Group | None) -> None:
        self.rows.forget_unless_in(old, new)
        is_restless = new is not None and change_with_time(new.entries)
        (self._restless.add if is_restless else self._restless.discard)(key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if pod is not None and (id := id_of(pod)):
                self.mark(id)

    def _execution_changed(self, old: ExecutionRow | None, new: ExecutionRow | None) -> None:
        for row in (old, new):
            if row is not None:
                self.mark(row.id)

    def _event_changed(self, old: Event | None, new: Event | None) -> None:
        for event in (old, new):
            if event is not None and (about := event.involved_object).kind == "Pod":
                self._explain_anew(self.runtime.pods.get(f"{about.namespace}/{about.name}"))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is None or (old and new and readiness_of(old) == readiness_of(new)):
            return
        for pod in self.runtime.pods.by("node", node.metadata.name):
            self._explain_anew(pod)

    def _explain_anew(self, pod: Pod | None) -> None:
        if pod is not None and (id := id_of(pod)):
            self.rows.forget(id, pod.metadata.name)
            self.mark(id)


def readiness_of(node: Node) -> tuple[str, str, str] | None:
    """Return what the node says of its own Ready condition, all that the reasons of placed pods take from it."""
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    return None if ready is None else (ready.status, ready.reason, ready.message)


QUIET_SECONDS = 20.0  # less than a list is kept without a request


def rows_to_choose_from(runtime: Runtime, viewer: Viewer) -> Iterable[ExecutionRow]:
    """Return executions that the viewer may see, among which each of their owners, projects and tiers occurs."""
    if may_observe(viewer):
        return runtime.executions.one_of_each()
    # Those of a large project are many, and alike: judging each on the loop takes 70 ms of 50,000.
    seen = {(row.owner_id, row.project_id, row.tier_id): row for row in runtime.executions.seen_by(viewer.id)}
    return [row for row in seen.values() if may_see_execution(viewer, row)]


def _may_still_see(runtime: Runtime, viewer: Viewer, group: Group) -> bool:
    row = runtime.executions.get(group.head.execution_id)
    return may_observe(viewer) or (row is not None and may_see_execution(viewer, row))


class ExecutionsPage(LivePage[ExecutionsView, ExecutionList]):
    name = "executions"
    reads_database = False
    regions = frozenset({"executions"})

    def __init__(self) -> None:
        self._lists: ExecutionLists | None = None

    def view(self, query: QueryDict) -> ExecutionsView:
        """Return the view of active executions; ended ones are on another page, which is not live."""
        return ExecutionsView.parse({**query.dict(), "show": ""})

    def allowed(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView) -> bool:
        return True

    def audience(self, viewer: Viewer) -> Hashable:
        return "observers" if may_observe(viewer) else viewer.id

    async def read(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView) -> ExecutionList:
        return await self._list(runtime, viewer, view)

    async def _list(
        self, runtime: Runtime, viewer: Viewer, view: ExecutionsView, *, within: float | None = None
    ) -> ExecutionList:
        lists = self.lists_in(runtime)
        executions = await lists.list_of(viewer, view, within=within)
        await lists.put_into_words(executions, view.page)
        if executions.awaits_start(view.page):
            EXPECTED.begin(runtime)
        return executions

    async def read_in_time(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView) -> ExecutionList:
        return await self._list(runtime, viewer, view, within=FIRST_PAINT_SECONDS)

    def topics(
        self, runtime: Runtime, viewer: Viewer, view: ExecutionsView, executions: ExecutionList
    ) -> Collection[Topic]:
        return {executions.topic, runtime.usage.name, *executions.rooms(view.page)}

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: ExecutionsView, executions: ExecutionList, now: datetime
    ) -> Sequence[Fragment]:
        lists = self.lists_in(runtime)
        progress, page = lists.progress_of(executions), executions.page(view.page)
        if lists.is_behind(executions):
            # One of the changes that are not in it yet may have ended the viewer's access, or the execution itself.
            present = [group for group in page.items if group.key in lists.items]
            page = replace(page, items=[group for group in present if _may_still_see(runtime, viewer, group)])
        rows = executions.rows_of(view.page, page, lists.rows, now)
        return page_fragments(executions.window, page, view, rows, progress)

    def tick(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView, executions: ExecutionList) -> float:
        if self.lists_in(runtime).is_behind(executions):
            return BEHIND_SECONDS
        is_waiting = executions.changes_with_time or executions.awaits_start(view.page)
        is_restless = is_waiting or executions.is_restless(view.page, runtime.clock())
        return self.tick_seconds if is_restless else QUIET_SECONDS

    async def keep_warm(self, runtime: Runtime) -> None:
        """Keep the list that observers see first, from when all has been read, for ever."""
        while True:
            if runtime.executions.are_read and runtime.freshness().synced:
                self.lists_in(runtime).warm_up()
            await asyncio.sleep(WARMED_SECONDS)

    def lists_in(self, runtime: Runtime) -> ExecutionLists:
        if self._lists is None or self._lists.runtime is not runtime:
            self._lists = ExecutionLists(runtime)
        return self._lists


EXECUTIONS = ExecutionsPage()
