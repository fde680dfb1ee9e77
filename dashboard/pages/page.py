"""What a page must say about itself so that it can be shown, and kept right while somebody looks."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence
from datetime import datetime
from typing import ClassVar, Generic, TypeVar

from django.http import QueryDict

from dashboard.access import Viewer
from dashboard.viewmodels.live import Fragment
from grid.runtime import Runtime
from grid.watch.hub import Topic

View = TypeVar("View", bound=Hashable)
Facts = TypeVar("Facts")


class LivePage(ABC, Generic[View, Facts]):
    """One kind of page. `View` is a frozen value of what its query string asks for: filter, sort, page, name of the thing. `Facts` is what
    has to be waited for.

    A look is `read`, which may wait, then `fragments` and `topics`, which may not: so they speak of one moment. It looks again when
    one of the topics changes, and every `tick_seconds`, for what passes with time alone. `regions` names the containers with ordered
    children, so that an empty one is known.
    """

    name: ClassVar[str]
    regions: ClassVar[frozenset[str]] = frozenset()
    tick_seconds: ClassVar[float] = 5.0
    reads_database: ClassVar[bool] = True  # in `read`: one that takes long is followed by a rest
    refusal: ClassVar[str] = "This page is not for your account."

    @abstractmethod
    def view(self, query: QueryDict) -> View:
        """Whatever the query says: nonsense in it means the default, never an error."""

    @abstractmethod
    def allowed(self, runtime: Runtime, viewer: Viewer, view: View) -> bool:
        """May this person see this view? Asked for the page and at connect."""

    def still_allowed(self, runtime: Runtime, viewer: Viewer, view: View) -> bool:
        """May this person go on seeing it? Asked about once a second and before each update. Differs from `allowed` where the right depends
        on an object that may be gone by then."""
        return self.allowed(runtime, viewer, view)

    @abstractmethod
    async def read(self, runtime: Runtime, viewer: Viewer, view: View) -> Facts:
        """What has to be waited for: the database, through `grid.database.pages`, and long computations."""

    @abstractmethod
    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: View, facts: Facts, now: datetime
    ) -> Sequence[Fragment]:
        """The whole page now, in order, from the stores and from what `read` returned."""

    @abstractmethod
    def topics(self, runtime: Runtime, viewer: Viewer, view: View, facts: Facts) -> Collection[Topic]:
        """The hub's topics that what is shown now depends on, and no others: each wakes the page."""

    def audience(self, viewer: Viewer) -> Hashable:
        """What of the viewer matters for `fragments`: viewers with equal audiences share one computation."""
        return viewer
