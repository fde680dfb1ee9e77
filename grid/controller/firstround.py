"""Reconciles each active execution once when a term begins, so that what ended while nobody led is known before schedules are looked at."""

import asyncio
import contextlib
from collections.abc import Callable, Collection

LOOK_SECONDS = 0.2  # between two looks whether it can begin
PATIENCE_SECONDS = 60.0  # for executions that cannot be reconciled; all others have been by then


class FirstRound:
    """The first round of reconciling of a term. `run` returns when it is over."""

    def __init__(
        self, can_begin: Callable[[], bool], executions: Collection[str], enqueue: Callable[[str], None]
    ) -> None:
        """Build it; `can_begin` tells whether `executions`, a live view, and their pods have been read."""
        self._can_begin = can_begin
        self._executions = executions
        self._enqueue = enqueue
        self._left: set[str] = set()
        self._has_none_left = asyncio.Event()
        self._is_over = asyncio.Event()

    async def run(self) -> None:
        """Wait until it can begin, have each execution reconciled, and wait for that, though not for ever."""
        while not self._can_begin():  # noqa: ASYNC110  several loops make it true, and nobody waits for a fifth of a second
            await asyncio.sleep(LOOK_SECONDS)
        self._left = set(self._executions)
        for id in self._left:
            self._enqueue(id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while self._left:
                    self._has_none_left.clear()
                    await self._has_none_left.wait()
        self._is_over.set()

    async def over(self) -> None:
        await self._is_over.wait()

    def reconciled(self, execution_id: str) -> None:
        self._left.discard(execution_id)
        if not self._left:
            self._has_none_left.set()
