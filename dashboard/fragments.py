"""Fragments to HTML: the one place where they are rendered, for the first paint and for every update.

A template gets the fragment's view-model as `x`, the element's id as `id` and the moment as `now`. `RenderedFragments`
remembers what it rendered, so that a row that changes is rendered once for all who look at it; what passes with time alone
(ages) is kept right by the page itself, from `<time>` elements.
"""

from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime

from django.template.loader import get_template

from dashboard.viewmodels.live import Fragment, PageUpdate

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
    """The latest `limit` rendered fragments; used on the event loop only."""

    def __init__(self, limit: int = 20_000) -> None:
        self._limit = limit
        self._rendered: OrderedDict[Fragment, str] = OrderedDict()
        self.count = 0

    def html(self, fragment: Fragment, *, now: datetime) -> str:
        known = self._rendered.get(fragment)
        if known is not None:
            self._rendered.move_to_end(fragment)
            return known
        rendered = render_fragment(fragment, now=now)
        self.count += 1
        self._rendered[fragment] = rendered
        if len(self._rendered) > self._limit:
            self._rendered.popitem(last=False)
        return rendered

    def message(self, changes: Iterable[PageUpdate], *, now: datetime) -> str:
        """One websocket message; each change is a partial of its own, so that rows parse as rows whatever stands beside them."""
        return "".join(
            f'<hx-partial hx-target="[id=&quot;{change.target}&quot;]" hx-swap="{_SWAPS[change.kind]}">'
            f"{''.join(self.html(fragment, now=now) for fragment in change.fragments)}</hx-partial>"
            for change in changes
        )
