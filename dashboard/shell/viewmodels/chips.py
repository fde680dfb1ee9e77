"""The conditions of a filter as chips; pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FilterChip:
    """One condition of a filter in words, and the query string of the page without it."""

    words: str
    without: str
