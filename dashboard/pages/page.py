"""What a page must say about itself so that it can be shown, and kept right while somebody looks."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import ClassVar, Generic, TypeVar

from django.http import QueryDict

from dashboard.access import Viewer
from dashboard.viewmodels.live import Fragment
from grid.runtime import Runtime

View = TypeVar("View", bound=Hashable)


class LivePage(ABC, Generic[View]):
    """One kind of page. `View` is a frozen value of what its query string asks for: filter, sort, page, name of the thing.

    `topics` are the hub's topics that make it look again; it also looks every `tick_seconds`, for what passes with time alone.
    `regions` names the containers with ordered children, so that an empty one is known.
    """

    name: ClassVar[str]
    topics: ClassVar[frozenset[str]]
    regions: ClassVar[frozenset[str]] = frozenset()
    tick_seconds: ClassVar[float] = 5.0
    refusal: ClassVar[str] = "This page is not for your account."

    @abstractmethod
    def view(self, query: QueryDict) -> View:
        """Whatever the query says: nonsense in it means the default, never an error."""

    @abstractmethod
    def allowed(self, runtime: Runtime, viewer: Viewer, view: View) -> bool:
        """May this person see this view? Asked for the page and at connect."""

    def still_allowed(self, runtime: Runtime, viewer: Viewer, view: View) -> bool:
        """Asked again every half minute. Differs from `allowed` where the right hangs on an object that may be gone by then."""
        return self.allowed(runtime, viewer, view)

    @abstractmethod
    async def fragments(self, runtime: Runtime, viewer: Viewer, view: View, now: datetime) -> Sequence[Fragment]:
        """The whole page now, in order. Read stores without awaiting in between; the database through `grid.database.pages`."""

    def audience(self, viewer: Viewer) -> Hashable:
        """What of the viewer matters for `fragments`: viewers with equal audiences share one computation."""
        return viewer
