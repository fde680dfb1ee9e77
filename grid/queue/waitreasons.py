"""Writes why executions wait, beside the controller's poll: in a long queue each admission changes the place of hundreds.

What the latest admission decided counts; what an earlier one decided and is not written yet is dropped. It is written in turn by owner, a
few in each look at the database, so that neither the admission of others nor a login waits for it.
"""

import asyncio
import logging
import random
from collections.abc import Sequence
from contextlib import suppress

from grid.core.backoff import Backoff
from grid.database.trouble import TroubleLog
from grid.database.turns import PersonTurns
from grid.executions.context import Context
from grid.queue.admission import AdmissionRefusal, write_refusals

logger = logging.getLogger(__name__)

AT_ONCE = 5  # units of one person, some milliseconds


class Superseded(Exception):
    """A later admission has decided anew."""


class WaitReasonWriter:
    """Writes what was decided last; `run` until cancelled."""

    def __init__(self, context: Context, troubles: TroubleLog, rng: random.Random) -> None:
        self._context = context
        self._troubles = troubles
        self._rng = rng
        self._latest: Sequence[AdmissionRefusal] = ()
        self._turns = PersonTurns[int]()
        self._has_changed = asyncio.Event()

    def put(self, refusals: Sequence[AdmissionRefusal]) -> None:
        self._latest = refusals
        self._has_changed.set()

    async def run(self) -> None:
        """Write what is put, for ever. What fails is decided, and put, again."""
        backoff = Backoff(rng=self._rng)
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            try:
                await self.write()
                backoff.reset()
            except Exception as error:
                if not self._troubles.handles(error):
                    logger.exception("not written why executions wait")
                await asyncio.sleep(backoff.next())

    async def write(self) -> None:
        """Write what was put last, until something else is."""
        latest, by_owner = self._latest, dict[int, list[AdmissionRefusal]]()
        for refusal in latest:
            by_owner.setdefault(refusal.owner_id, []).append(refusal)
        due = [
            (owner, own[start : start + AT_ONCE])
            for owner, own in by_owner.items()
            for start in range(0, len(own), AT_ONCE)
        ]

        async def write(some: Sequence[AdmissionRefusal]) -> None:
            if self._latest is not latest:
                raise Superseded  # at once: whoever was not served yet comes first in what is written next
            await self._context.due_work(write_refusals, some, now=self._context.clock())

        with suppress(Superseded):
            await self._turns.serve(due, write, at_most=len(due))
