"""What every list has: which part of it is shown, and an empty state."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paging:
    """Which rows of how many, and where the others are; for `fragments/paging.html`."""

    sentence: str
    previous: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True)
class EmptyState:
    """What is not there, and what to do about it; for `fragments/empty_row.html` and `fragments/empty_item.html`."""

    headline: str
    advice: str
