"""The first page after login, live: the user's own executions, stopped workspaces, slots, latest launches and projects."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable, Sequence
from datetime import datetime

from django.conf import settings
from django.http import QueryDict

from dashboard.clusters.page import is_head
from dashboard.executions.pages.execution_pods import pods_of
from dashboard.executions.pages.execution_rows import group_status
from dashboard.executions.viewmodels.execution_groups import group_of
from dashboard.home.records import HomeRecords, read_home
from dashboard.home.viewmodels.my_executions import SHOWN, my_executions, my_side
from dashboard.shell.access import Viewer
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import ACTIVE_STATES, StatusLine, state_status
from dashboard.starts.expected_waits import EXPECTED
from grid.core.labels import Keys
from grid.database import threads as database
from grid.kube.events import topic_about
from grid.kube.hub import Topic
from grid.runtime import Runtime
from grid.runtime.executionrows import ExecutionRow
from grid.runtime.executions import OWNER, TOPIC
from grid.runtime.starts import STARTING

READ_SECONDS = 10.0  # renaming or deleting a workspace writes no execution
_READ_KEPT = 2000


class HomePage(LivePage[None, HomeRecords]):
    name = "home"

    def __init__(self) -> None:
        self._read: OrderedDict[int, tuple[float, object, HomeRecords]] = OrderedDict()
        self._forgotten: Counter[int] = Counter()  # the number of calls of `forget` by user

    def view(self, query: QueryDict) -> None:
        return None

    def allowed(self, runtime: Runtime, viewer: Viewer, view: None) -> bool:
        return True

    def audience(self, viewer: Viewer) -> Hashable:
        return viewer.id

    def forget(self, user_id: int) -> None:
        """Make the next update read the user's workspaces again; called when the page is requested."""
        self._read.pop(user_id, None)
        self._forgotten[user_id] += 1

    async def read(self, runtime: Runtime, viewer: Viewer, view: None) -> HomeRecords:
        mine = runtime.executions.of_owner(viewer.id)
        if any(row.state in STARTING for row in mine):
            EXPECTED.begin(runtime)
        return await self._records(runtime, viewer.id, list(mine))

    def topics(self, runtime: Runtime, viewer: Viewer, view: None, records: HomeRecords) -> Collection[Topic]:
        topics: set[Topic] = {(TOPIC, OWNER, str(viewer.id))}
        for row in runtime.executions.of_owner(viewer.id):
            if row.state in ACTIVE_STATES:
                topics.add((runtime.pods.name, "execution", row.id))
                for pod in pods_of(runtime, row.id):
                    if row.kind != "cluster" or is_head(pod):
                        topics.add(topic_about("Pod", pod.metadata.name, settings.GRID_NAMESPACE))
                        topics.update(runtime.explainer.topics(pod))
        return topics

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: None, records: HomeRecords, now: datetime
    ) -> Sequence[Fragment]:
        keys = Keys.under(settings.LABEL_PREFIX)

        def status(row: ExecutionRow) -> tuple[StatusLine, str]:
            group = group_of(row, pods_of(runtime, row.id), keys) if row.state in ACTIVE_STATES else None
            if group is None:
                return state_status(row.state, message=row.words(to_owner=True))
            return group_status(runtime, group, now)

        mine = list(runtime.executions.of_owner(viewer.id))
        side = my_side(mine, maximum=records.maximum_slots, launches=records.launches, projects=records.projects)
        return [my_executions(mine, records.workspaces, status, now), side]

    async def _records(self, runtime: Runtime, user_id: int, mine: Sequence[ExecutionRow]) -> HomeRecords:
        """Return what is stored for the user, read again only when one of the user's executions was written, or after `READ_SECONDS`."""
        key, at = (id(runtime), mine), asyncio.get_running_loop().time()
        known = self._read.get(user_id)
        if known is not None and known[1] == key and 0 <= at - known[0] < READ_SECONDS:
            return known[2]
        # Active workspaces are among the latest ones; the extra one tells whether there are more.
        count = SHOWN + 1 + sum(bool(row.workspace_id) for row in mine)
        before = self._forgotten[user_id]
        records = await database.pages.run(read_home, user_id, count)
        if self._forgotten[user_id] != before:
            return records  # they may be older than the call of `forget`, so they are not kept
        self._read[user_id] = (at, key, records)
        self._read.move_to_end(user_id)
        if len(self._read) > _READ_KEPT:
            self._read.popitem(last=False)
        return records


HOME = HomePage()
