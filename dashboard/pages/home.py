"""The first page after login, live: one's own executions."""

from collections.abc import Collection, Hashable, Sequence
from datetime import datetime

from django.http import QueryDict

from dashboard.access import Viewer
from dashboard.pages.page import LivePage
from dashboard.viewmodels.live import Fragment
from dashboard.viewmodels.my_executions import my_executions
from grid.runtime import Runtime
from grid.runtime.executions import OWNER, TOPIC
from grid.watch.hub import Topic


class HomePage(LivePage[None, None]):
    name = "home"

    def view(self, query: QueryDict) -> None:
        return None

    def allowed(self, runtime: Runtime, viewer: Viewer, view: None) -> bool:
        return True

    def audience(self, viewer: Viewer) -> Hashable:
        return viewer.id

    async def read(self, runtime: Runtime, viewer: Viewer, view: None) -> None:
        """Everything is in memory."""

    def topics(self, runtime: Runtime, viewer: Viewer, view: None, facts: None) -> Collection[Topic]:
        return {(TOPIC, OWNER, str(viewer.id))}

    def fragments(self, runtime: Runtime, viewer: Viewer, view: None, facts: None, now: datetime) -> Sequence[Fragment]:
        return [my_executions(runtime.executions.of_owner(viewer.id))]


HOME = HomePage()
