"""Work on the event loop that grows with the cluster, in slices between which others run."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")


async def in_slices(items: Iterable[T], size: int) -> AsyncIterator[T]:
    """Yield the items, and let others run after each `size` of them; these must not change what is gone through."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)
