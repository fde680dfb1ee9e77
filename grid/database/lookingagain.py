"""Does the leader's tasks again and again, for as long as it leads."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import datetime

from grid.core.backoff import Backoff
from grid.database.seam import Database
from grid.database.trouble import TroubleLog

logger = logging.getLogger(__name__)


class DatabaseTask:
    """One of the leader's tasks for which it needs only the database; `run` until cancelled."""

    def __init__(
        self, database: Database, clock: Callable[[], datetime], troubles: TroubleLog, rng: random.Random
    ) -> None:
        self._database = database
        self._clock = clock
        self._troubles = troubles
        self._rng = rng


async def look_again(
    look: Callable[[], Awaitable[object]], seconds: float, troubles: TroubleLog, rng: random.Random, *, failure: str
) -> None:
    """Call `look` for ever, `seconds` after it has returned; later and later while it fails. `failure` tells the log what was not done."""
    backoff = Backoff(rng=rng)
    while True:
        pause = seconds
        try:
            await look()
            backoff.reset()
        except Exception as error:
            if not troubles.are_why(error):
                logger.exception("%s", failure)
            pause = max(seconds, backoff.next())
        await asyncio.sleep(pause)


async def take_turns(
    turn: Callable[[], Awaitable[object]], seconds: float, rest: float, troubles: TroubleLog, *, failure: str
) -> None:
    """Call `turn` for ever, `seconds` after it has returned, or `rest` times as long as it took when that is longer: however much there is
    to do, others get their turn. It fails alone, and the leader's other tasks go on; `failure` tells the log what was not done."""
    loop, took = asyncio.get_running_loop(), 0.0
    while True:
        await asyncio.sleep(max(seconds, rest * took))
        began = loop.time()
        try:
            await turn()
        except Exception as error:
            if not troubles.are_why(error):
                logger.exception("%s", failure)
        took = loop.time() - began
