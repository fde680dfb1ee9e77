"""Has the leading controller seal the audit log's entries, see `grid.audit.sealing`, and log where the chain ends."""

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import datetime

from grid.audit import sealing as auditsealing
from grid.database.lookingagain import look_again
from grid.database.seam import Database
from grid.database.trouble import TroubleLog

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 10.0
PAUSE_SECONDS = 0.1  # for other writers


class AuditSealer:
    """Seals what is not sealed yet; `run` until cancelled."""

    def __init__(self, database: Database, clock: Callable[[], datetime], troubles: TroubleLog) -> None:
        self._database = database
        self._clock = clock
        self._troubles = troubles

    async def run(self, rng: random.Random) -> None:
        await look_again(self.once, PERIOD_SECONDS, self._troubles, rng, failure="audit log not sealed")

    async def once(self) -> int:
        """Seal all entries, a batch in a transaction, and return their number. The link that is logged is for keeping elsewhere: with
        it `verify_audit --link` finds that somebody wrote the whole chain anew."""
        total = 0
        while sealed := await self._database(auditsealing.seal, self._clock()):
            total += sealed
            await asyncio.sleep(PAUSE_SECONDS)
        if total:
            logger.info("audit log sealed entries=%d link=%s", total, await self._database(auditsealing.head))
        return total
