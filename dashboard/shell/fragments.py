"""Renders fragments to HTML, for the first paint and for every update. A template gets the fragment's view-model as `x`, the element's id
as `id` and the current time as `now`. `RenderedFragments` caches what it rendered for a while, so that a changed row is rendered once for
all its viewers; the page itself keeps ages up to date, from `<time>` elements."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

from django.template import engines
from django.template.backends.django import DjangoTemplates
from django.template.loader import get_template
from django.urls import reverse
from django.utils.formats import number_format

from dashboard.shell.viewmodels.live import Fragment, PageUpdate

# As long as a list that nobody asks for; most of what is older is a row as it was before its last change.
KEPT_UNUSED = timedelta(seconds=30)
_SWAPS = {
    "replace": "outerMorph",
    "fill": "innerMorph",
    "prepend": "afterbegin",
    "after": "afterend",
    "remove": "delete",
}


_template = lru_cache(maxsize=None)(get_template)


def render_fragment(fragment: Fragment, *, now: datetime) -> str:
    return _template(fragment.template).render({"x": fragment.context, "id": fragment.id, "now": now}).strip()


class RenderedFragments:
    """A cache of the fragments used within `KEPT_UNUSED`, at most the latest `limit`, for use on the event loop only."""

    def __init__(self, limit: int = 20_000) -> None:
        self._limit = limit
        self._rendered: OrderedDict[Fragment, tuple[datetime, str]] = OrderedDict()  # in the order of their last use
        self.count = 0

    def __len__(self) -> int:
        return len(self._rendered)

    def html(self, fragment: Fragment, *, now: datetime) -> str:
        _, html = self._rendered.pop(fragment, (now, None))
        if html is None:
            self.count += 1
            html = render_fragment(fragment, now=now)
        self._rendered[fragment] = now, html
        while len(self._rendered) > self._limit or now - next(iter(self._rendered.values()))[0] > KEPT_UNUSED:
            self._rendered.popitem(last=False)
        return html

    def message(self, changes: Iterable[PageUpdate], *, now: datetime) -> str:
        """Return one websocket message. Each change is its own partial, so that table rows parse as rows whatever is beside them."""
        return "".join(self.message_parts(changes, now=now))

    def message_parts(self, changes: Iterable[PageUpdate], *, now: datetime) -> Iterator[str]:
        """Yield the pieces of such a message, of which none takes longer than one fragment."""
        for change in changes:
            begun = f'<hx-partial hx-target="[id=&quot;{change.target}&quot;]" hx-swap="{_SWAPS[change.kind]}">'
            for fragment in change.fragments:
                yield begun + self.html(fragment, now=now)
                begun = ""
            yield f"{begun}</hx-partial>"


def preload() -> None:
    """Import all views, compile all templates and the patterns of all addresses, and read the formats of numbers."""
    reverse("home")  # makes the tables of all addresses, 0.1 s, for which the first visitor would wait
    number_format(1)
    for engine in engines.all():
        assert isinstance(engine, DjangoTemplates)
        for folder in map(Path, engine.engine.dirs):
            for path in folder.rglob("*.html"):
                engine.get_template(str(path.relative_to(folder)))
