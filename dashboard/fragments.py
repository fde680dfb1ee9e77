"""Fragments to HTML: the one place where they are rendered, for the first paint and for every update.

A template gets the fragment's view-model as `x`, the element's id as `id` and the moment as `now`. `RenderedFragments`
remembers for a while what it rendered, so that a row that changes is rendered once for all who look at it; what passes with time alone
(ages) is kept right by the page itself, from `<time>` elements.
"""

from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.template.loader import get_template

from dashboard.viewmodels.live import Fragment, PageUpdate

# As long as a list that nobody asks for; most of what is older is a row as it was before its last change.
KEPT_UNUSED = timedelta(seconds=30)
_SWAPS = {
    "replace": "outerMorph",
    "fill": "innerMorph",
    "prepend": "afterbegin",
    "after": "afterend",
    "remove": "delete",
}


def render_fragment(fragment: Fragment, *, now: datetime) -> str:
    template = get_template(fragment.template)
    return template.render({"x": fragment.context, "id": fragment.id, "now": now}).strip()


class RenderedFragments:
    """The fragments that were asked for within `KEPT_UNUSED`, at most the latest `limit`; used on the event loop only."""

    def __init__(self, limit: int = 20_000) -> None:
        self._limit = limit
        self._rendered: OrderedDict[Fragment, tuple[datetime, str]] = OrderedDict()  # in the order of their last use
        self.count = 0

    def __len__(self) -> int:
        return len(self._rendered)

    def html(self, fragment: Fragment, *, now: datetime) -> str:
        known = self._rendered.get(fragment)
        if known is None:
            self.count += 1
            known = now, render_fragment(fragment, now=now)
        self._rendered[fragment] = now, known[1]
        self._rendered.move_to_end(fragment)
        self._forget_unused(now)
        return known[1]

    def _forget_unused(self, now: datetime) -> None:
        while len(self._rendered) > self._limit or now - next(iter(self._rendered.values()))[0] > KEPT_UNUSED:
            self._rendered.popitem(last=False)

    def message(self, changes: Iterable[PageUpdate], *, now: datetime) -> str:
        """One websocket message; each change is a partial of its own, so that rows parse as rows whatever stands beside them."""
        return "".join(
            f'<hx-partial hx-target="[id=&quot;{change.target}&quot;]" hx-swap="{_SWAPS[change.kind]}">'
            f"{''.join(self.html(fragment, now=now) for fragment in change.fragments)}</hx-partial>"
            for change in changes
        )
