"""The first page after login, live: one's own executions."""

from collections.abc import Hashable, Sequence
from datetime import datetime

from django.http import QueryDict

from dashboard.access import Viewer
from dashboard.pages.page import LivePage
from dashboard.viewmodels.live import Fragment
from dashboard.viewmodels.my_executions import my_executions
from grid.runtime import Runtime


class HomePage(LivePage[None]):
    name = "home"
    topics = frozenset({"executions"})

    def view(self, query: QueryDict) -> None:
        return None

    def allowed(self, runtime: Runtime, viewer: Viewer, view: None) -> bool:
        return True

    def audience(self, viewer: Viewer) -> Hashable:
        return viewer.id

    async def fragments(self, runtime: Runtime, viewer: Viewer, view: None, now: datetime) -> Sequence[Fragment]:
        return [my_executions(runtime.executions.values(), viewer.id)]


HOME = HomePage()
