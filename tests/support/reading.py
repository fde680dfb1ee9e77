"""Who reads what is stored with an execution: `row.words(OWNER)` is the cause of its state as its owner reads it.

Causes that say the same to everybody are read with it too, so that a case need not know which those are.
"""

from collections.abc import Iterable

from grid.core.reasons import Reader
from grid.models import LifecycleEntry

OWNER = Reader("", is_owner=True)


def words_of_each(entries: Iterable[LifecycleEntry]) -> list[str]:
    """Return what the owner reads of each entry of the history."""
    return [entry.words(OWNER) for entry in entries]
