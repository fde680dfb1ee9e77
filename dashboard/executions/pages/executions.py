"""The Executions page, live: all running and waiting executions that the viewer may see."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from django.http import QueryDict

from dashboard.executions.pages.execution_lists import ExecutionList, ExecutionLists
from dashboard.executions.viewmodels.execution_groups import Group
from dashboard.executions.viewmodels.executions import page_fragments
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.access import Viewer, may_observe, may_see_execution
from dashboard.shell.pages.lists import BEHIND_SECONDS, FIRST_PAINT_SECONDS
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.live import Fragment
from dashboard.starts.expected_waits import EXPECTED
from grid.kube.hub import Topic
from grid.runtime import Runtime
from grid.runtime.executionrows import ExecutionRow

QUIET_SECONDS = 20.0  # less than a list is kept without a request


def rows_to_choose_from(runtime: Runtime, viewer: Viewer) -> Iterable[ExecutionRow]:
    """Return executions that the viewer may see, among which each of their owners, projects and tiers occurs."""
    if may_observe(viewer):
        return runtime.executions.one_of_each()
    return [row for row in runtime.executions.seen_by(viewer.id) if may_see_execution(viewer, row)]


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
        return page_fragments(
            executions.window, page, view, executions.rows_of(view.page, page, lists.rows, now), progress
        )

    def tick(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView, executions: ExecutionList) -> float:
        if self.lists_in(runtime).is_behind(executions):
            return BEHIND_SECONDS
        is_waiting = executions.changes_with_time or executions.awaits_start(view.page)
        is_restless = is_waiting or executions.is_restless(view.page, runtime.clock())
        return self.tick_seconds if is_restless else QUIET_SECONDS

    async def _list(
        self, runtime: Runtime, viewer: Viewer, view: ExecutionsView, *, within: float | None = None
    ) -> ExecutionList:
        executions = await self.lists_in(runtime).list_of(viewer, view, within=within)
        if executions.awaits_start(view.page):
            EXPECTED.begin(runtime)
        return executions

    def lists_in(self, runtime: Runtime) -> ExecutionLists:
        if self._lists is None or self._lists.runtime is not runtime:
            self._lists = ExecutionLists(runtime)
        return self._lists


EXECUTIONS = ExecutionsPage()
