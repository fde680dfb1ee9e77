"""Does one of the leader's tasks again and again, for as long as it leads."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from grid.backoff import Backoff
from grid.databasetrouble import TroubleLog

logger = logging.getLogger(__name__)


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
