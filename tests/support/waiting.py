"""Waiting for what another task, thread or process brings about, which nothing announces: look until it is so, or fail.

Both return what was seen. Under virtual time there is `virtual.until`, whose seconds cost nothing.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")
PATIENCE_SECONDS = 60.0  # for a machine on which much else runs


@overload
async def eventually(
    probe: Callable[[], Awaitable[T | None]],
    what: str = ...,
    *,
    holds: Callable[[Any], object] = ...,
    within: float = ...,
) -> T: ...
@overload
async def eventually(
    probe: Callable[[], T | None], what: str = ..., *, holds: Callable[[Any], object] = ..., within: float = ...
) -> T: ...
async def eventually(
    probe: Callable[[], Any],
    what: str = "the condition",
    *,
    holds: Callable[[Any], object] = bool,
    within: float = PATIENCE_SECONDS,
) -> Any:
    """For a test on a loop, which goes on meanwhile; `probe` may be asynchronous."""
    deadline = time.monotonic() + within
    while True:
        seen = probe()
        if inspect.isawaitable(seen):
            seen = await seen
        if holds(seen):
            return seen
        assert time.monotonic() < deadline, f"waited {within:.0f} s in vain for {what}, saw {seen!r:.500}"
        await asyncio.sleep(0.02)


def wait_until(probe: Callable[[], T | None], seconds: float = PATIENCE_SECONDS, what: str = "the condition") -> T:
    """For a test without a loop."""
    deadline = time.monotonic() + seconds
    while not (seen := probe()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}, saw {seen!r:.500}"
        time.sleep(0.02)
    return seen
