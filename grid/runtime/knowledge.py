"""Keeps the knowledge base of log findings in force in a web process, whichever process an admin has edited it in."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from grid.database.threads import background
from grid.database.trouble import TroubleLog
from grid.logs import knowledge

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 10.0


async def follow(
    monotonic: Callable[[], float],
    *,
    run: Callable[..., Awaitable[Any]] = background.run,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Read the entries every few seconds, for ever. A failure is logged; the entries before stay in force."""
    troubles = TroubleLog(monotonic)
    while True:
        try:
            await run(knowledge.refresh)
            troubles.tell_if_over()
        except Exception as error:
            if not troubles.are_why(error):
                logger.exception("the knowledge base is not read")
        await sleep(PERIOD_SECONDS)
