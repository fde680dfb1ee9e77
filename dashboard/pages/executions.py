"""The Executions page, live: everything that runs or waits, as far as its viewer may see it."""

from collections.abc import Collection, Hashable, Sequence
from datetime import datetime

from django.http import QueryDict

from dashboard.access import Viewer, may_observe, may_see_execution
from dashboard.pages.execution_lists import ExecutionList, ExecutionLists
from dashboard.pages.page import LivePage
from dashboard.viewmodels.executions import page_fragments
from dashboard.viewmodels.executions_view import ExecutionsView
from dashboard.viewmodels.live import Fragment
from grid.runtime import Runtime
from grid.runtime.executions import ExecutionRow
from grid.watch.hub import Topic


def visible_rows(runtime: Runtime, viewer: Viewer) -> list[ExecutionRow]:
    """All that this person may see, found by who they are: asking for each of 20,000 would keep the loop from its work."""
    if may_observe(viewer):
        return list(runtime.executions.values())
    return [row for row in runtime.executions.seen_by(viewer.id) if may_see_execution(viewer, row)]


class ExecutionsPage(LivePage[ExecutionsView, ExecutionList]):
    name = "executions"
    reads_database = False
    regions = frozenset({"executions"})

    def __init__(self) -> None:
        self._lists: ExecutionLists | None = None

    def view(self, query: QueryDict) -> ExecutionsView:
        """Ended executions have a page of their own, which nothing changes any more."""
        return ExecutionsView.parse({**query.dict(), "show": ""})

    def allowed(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView) -> bool:
        return True

    def audience(self, viewer: Viewer) -> Hashable:
        return "observers" if may_observe(viewer) else viewer.id

    async def read(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView) -> ExecutionList:
        return await self._lists_in(runtime).list_of(viewer, view)

    def topics(
        self, runtime: Runtime, viewer: Viewer, view: ExecutionsView, executions: ExecutionList
    ) -> Collection[Topic]:
        return {executions.topic, runtime.usage.name}

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: ExecutionsView, executions: ExecutionList, now: datetime
    ) -> Sequence[Fragment]:
        lists, sees_all = self._lists_in(runtime), may_observe(viewer)
        lists.catch_up()
        return page_fragments(
            executions.window,
            executions.page(view.page),
            view,
            lambda group: lists.rows.of(group, sees_all=sees_all, now=now),
        )

    def _lists_in(self, runtime: Runtime) -> ExecutionLists:
        if self._lists is None or self._lists.runtime is not runtime:
            self._lists = ExecutionLists(runtime)
        return self._lists


EXECUTIONS = ExecutionsPage()
