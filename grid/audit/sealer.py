"""Has the leading controller seal the audit log's entries, see `grid.audit.sealing`, and log where the chain ends."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from grid.audit import sealing as auditsealing
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 10.0
PAUSE_SECONDS = 0.1  # for other writers


def periodic(database: Database, clock: Callable[[], datetime]) -> PeriodicTask:
    """Return the task that seals all entries that are not sealed yet, a batch in a transaction.

    The link that is logged is for keeping elsewhere: with it `verify_audit --link` finds that somebody wrote the whole chain anew.
    """

    async def run_once() -> None:
        total = 0
        while sealed := await database(auditsealing.seal, clock()):
            total += sealed
            await asyncio.sleep(PAUSE_SECONDS)
        if total:
            logger.info("audit log sealed entries=%d link=%s", total, await database(auditsealing.head))

    return PeriodicTask("audit sealing", PERIOD_SECONDS, run_once)
