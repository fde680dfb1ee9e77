"""The interface of a live page."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence
from datetime import datetime
from typing import ClassVar, Generic, TypeVar

from django.http import QueryDict

from dashboard.shell.access import Viewer
from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _
from grid.kube.hub import Topic
from grid.runtime import Runtime

View = TypeVar("View", bound=Hashable)
Facts = TypeVar("Facts")


class LivePage(ABC, Generic[View, Facts]):
    """One kind of page. `View` is its parsed query string, a frozen value: filter, sort, page, an object's name. `Facts` is what `read`
    returns. An update calls `read`, which may await, then `fragments` and `topics`, which may not, so that both see the same moment. The
    page is updated when one of the topics changes, and after `tick` for values that change with time alone. `regions` names the containers
    with ordered children, so that empty ones are included."""

    name: ClassVar[str]
    regions: ClassVar[frozenset[str]] = frozenset()
    tick_seconds: ClassVar[float] = 5.0
    rest_seconds: ClassVar[float] = 0.0  # between two updates, of a page on which something always changes
    reads_database: ClassVar[bool] = True  # in `read`: a slow read is followed by a rest
    refusal: ClassVar[str] = _("You have no access to this page.")

    @abstractmethod
    def view(self, query: QueryDict) -> View:
        """Parse the query; an invalid value means the default, never an error."""

    async def prepare(self, runtime: Runtime, viewer: Viewer, view: View) -> None:
        """Read what `allowed` decides by, if it is only in the database; called before it for the page and when its websocket connects."""

    @abstractmethod
    def allowed(self, runtime: Runtime, viewer: Viewer, view: View) -> bool:
        """Return whether the viewer may see the view; called for the page and when its websocket connects."""

    def still_allowed(self, runtime: Runtime, viewer: Viewer, view: View) -> bool:
        """Return whether the viewer may go on seeing the view; called about once a second and before each update. It differs from `allowed`
        where the right depends on an object that may be gone by then."""
        return self.allowed(runtime, viewer, view)

    @abstractmethod
    async def read(self, runtime: Runtime, viewer: Viewer, view: View) -> Facts:
        """Return what has to be awaited: reads of the database, through `grid.database.threads.pages`, and long computations."""

    async def read_in_time(self, runtime: Runtime, viewer: Viewer, view: View) -> Facts:
        """Return what `read` returns, for a first paint, which must not wait long. A page whose `read` may take long overrides this, and
        its `fragments` then say what is not whole yet."""
        return await self.read(runtime, viewer, view)

    @abstractmethod
    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: View, facts: Facts, now: datetime
    ) -> Sequence[Fragment]:
        """Return the whole page's fragments, in order, from the stores and from what `read` returned."""

    @abstractmethod
    def topics(self, runtime: Runtime, viewer: Viewer, view: View, facts: Facts) -> Collection[Topic]:
        """Return the hub's topics on which the present fragments depend, and no others: each one wakes the page."""

    def tick(self, runtime: Runtime, viewer: Viewer, view: View, facts: Facts) -> float:
        """Return the seconds after which the page is updated though no topic has changed."""
        return self.tick_seconds

    def audience(self, viewer: Viewer) -> Hashable:
        """Return the viewer's part that `fragments` depends on: viewers with equal audiences share one computation."""
        return viewer
