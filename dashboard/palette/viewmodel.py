"""Ranks what the command palette finds for a text, and holds what it shows; pure."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from dashboard.shell.viewmodels.format import either
from grid.core.translation import gettext as _, ngettext

MOST = 8  # items of a kind
_MOST_WORDS = 6
_AT_START, _ANYWHERE = 0, 1

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class PaletteItem:
    """A link, whose page asks first when it `asks`; with `theme` a button that chooses it, with `opens` one that opens an execution."""

    title: str
    note: str = ""
    url: str = ""
    theme: str = ""
    opens: str = ""
    asks: bool = False


@dataclass(frozen=True, slots=True)
class PaletteGroup:
    """The items of one kind, and the rank of the best one; a lower rank is better."""

    title: str
    items: Sequence[PaletteItem]
    rank: int = _ANYWHERE


@dataclass(frozen=True, slots=True)
class PaletteResults:
    """What is shown for a text; `sentence` says how many were found, or what can be found."""

    text: str
    sentence: str
    groups: Sequence[PaletteGroup]


def _begins_word(text: str, word: str) -> bool:
    """Return whether a word begins a word of the text, which comes after anything but a letter or a digit."""
    place = text.find(word)
    while place > 0 and text[place - 1].isalnum():
        place = text.find(word, place + 1)
    return place >= 0


class PaletteQuery:
    """A typed text. It finds what contains each of its words, in any order; without words it finds everything."""

    def __init__(self, text: str) -> None:
        self.words = text.lower().split()[:_MOST_WORDS]

    def rank(self, text: str) -> int | None:
        """Return 0 when each word begins a word of the text, 1 when each occurs anywhere, None when one does not."""
        lower = text.lower()
        if not all(word in lower for word in self.words):
            return None
        return _AT_START if all(_begins_word(lower, word) for word in self.words) else _ANYWHERE

    def group(
        self,
        title: str,
        items: Iterable[_Item],
        text_of: Callable[[_Item], str],
        shown: Callable[[_Item], PaletteItem],
        *,
        order: Callable[[_Item], Any] = lambda item: 0,
        most: int = MOST,
    ) -> PaletteGroup:
        """Return at most `most` matching items as they are `shown`, the best first, and among equals the lowest by `order`."""
        matches = ((rank, item) for item in items if (rank := self.rank(text_of(item))) is not None)
        best = heapq.nsmallest(most, matches, key=lambda match: (match[0], order(match[1])))
        return PaletteGroup(title, [shown(item) for _, item in best], best[0][0] if best else _ANYWHERE)


def in_order(groups: Iterable[PaletteGroup]) -> list[PaletteGroup]:
    """Return the groups that have items, those with the best items first."""
    return sorted((group for group in groups if group.items), key=lambda group: group.rank)


def hint(kinds: Sequence[str]) -> str:
    return _("Find an execution by title, id or object name, or a {kinds} by name.", kinds=either(kinds))


def results_sentence(text: str, groups: Sequence[PaletteGroup]) -> str:
    count = sum(len(group.items) for group in groups)
    if not count:
        return _("Nothing found for “{text}”.", text=text)
    return ngettext("{count} result", "{count} results", count)
