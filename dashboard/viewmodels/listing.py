"""The common parts of lists: the paging line and the empty state."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paging:
    """The paging line: which rows of how many are shown, and links to the neighboring pages; for `fragments/paging.html`."""

    sentence: str
    previous: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True)
class EmptyState:
    """The text of an empty list, with advice; for `fragments/empty_row.html` and `fragments/empty_item.html`."""

    headline: str
    advice: str
